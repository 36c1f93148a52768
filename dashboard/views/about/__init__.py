"""About: the version, licences, the glossary, and how to cite."""
