from penstock.testing.embedded import ArcFailed as ArcFailed
from penstock.testing.embedded import MadeLot as MadeLot
from penstock.testing.embedded import Server as Server
from penstock.testing.embedded import server as server
