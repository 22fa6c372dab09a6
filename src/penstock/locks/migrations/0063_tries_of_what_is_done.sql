-- What was held and let go again was done without a try; held once more, nobody could tell it from
-- what is to be made anew, and its arc showed it as not made.
UPDATE lot_work SET tries = 1 WHERE state = 'DONE' AND tries = 0 AND run_id IS NOT NULL;
