"""The generated reference pages. A function without arguments returns each as Markdown."""
