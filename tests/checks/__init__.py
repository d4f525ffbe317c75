"""Checks of the tree itself: words, versions, licences, and the harness. They need no database and no build."""
