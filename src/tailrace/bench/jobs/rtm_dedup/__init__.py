"""Drop the records whose id was there before."""
