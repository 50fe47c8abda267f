"""Files that the code made, kept in a repository."""
import re
import tempfile

from vial.codemie import CodeExecutorTool, DirectoryFileRepository

with tempfile.TemporaryDirectory() as folder:
    tool = CodeExecutorTool(file_repository=DirectoryFileRepository(folder), user_id="user")
    code = """
import pandas as pd
df = pd.DataFrame({'x': [1, 2, 3], 'y': [4, 5, 6]})
df.to_csv('output.csv', index=False)
print('File created')
"""
    result = tool.execute(code=code, export_files=["output.csv"])
    print(re.sub(r"sandbox:\S+", "sandbox:<url>", result))
# prints:
# File created
# File 'output.csv': sandbox:<url>
