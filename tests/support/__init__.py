"""What tests of several folders share: models, pages, servers and data. Test modules do not import each other."""
