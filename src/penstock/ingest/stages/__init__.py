"""The stages, one file each: what it needs, what it does, what can fail.

A stage gets a job that it has locked and gives the job as it shall be. Doing it twice does no harm.
It raises a PenstockError when the job fails, and Later when the job has to stay where it is.
"""
