"""Operations: backfills and replays, which work on many lots over a long time."""
