"""A website without Python: views as they are drawn for given sentences, with their stored numbers, as static files."""
