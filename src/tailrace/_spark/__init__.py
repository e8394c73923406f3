"""The layer between Python and Spark: jars, Java, settings, task slots, the plugin."""
