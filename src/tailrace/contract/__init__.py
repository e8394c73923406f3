"""The types of everything that crosses the JVM border or that a view reads, and the codec between them and JSON."""
