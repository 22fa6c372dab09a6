-- An arrival said by `empty` whether an interval without objects had an empty lot. It says so by
-- `missing` now. Arrivals that exist keep what they did.
UPDATE arrivals SET declaration =
    replace(
        replace(declaration, '"empty":true', '"missing":"empty"'),
        '"empty":false', '"missing":"missing"'
    );
