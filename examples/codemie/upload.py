"""Files for the code, under their exact names."""
import tempfile

from vial.codemie import CodeExecutorTool, DirectoryFileRepository, FileObject

files = [
    FileObject(name="[Video] Template.pptx", mime_type="application/octet-stream", owner="user",
               content=bytes(range(256))),
    FileObject(name="data.csv", mime_type="text/csv", owner="user", content=b"x,y\n1,2\n3,4\n"),
]
with tempfile.TemporaryDirectory() as folder:
    tool = CodeExecutorTool(
        file_repository=DirectoryFileRepository(folder),
        user_id="user123",
        input_files=files,
    )
    code = """
import pandas as pd
df = pd.read_csv('data.csv')
print(f"Loaded {len(df)} rows")
print(len(open('[Video] Template.pptx', 'rb').read()))  # Exact filename required
"""
    print(tool.execute(code=code))
# prints:
# Loaded 2 rows
# 256
