"""What Penstock is measured against, behind the same HTTP door."""
