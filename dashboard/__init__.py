"""The pages: the only code that imports streamlit."""
