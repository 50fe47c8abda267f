"""A document with brackets in its name: made by one execution, exported, uploaded for the next."""
import tempfile

from vial.codemie import CodeExecutorTool, DirectoryFileRepository, FileObject

with tempfile.TemporaryDirectory() as folder:
    repo = DirectoryFileRepository(folder)
    code = """
from pptx import Presentation
prs = Presentation()
prs.slides.add_slide(prs.slide_layouts[0]).shapes.title.text = 'A title'
prs.save('template.pptx')
"""
    result = CodeExecutorTool(file_repository=repo, user_id="maker").execute(
        code=code, export_files=["template.pptx"])
    made = FileObject.from_encoded_url(result.rsplit("/", 1)[1])
    content = repo.read_file(made.name, made.owner).content

    files = [FileObject(name="[Video] Template.pptx", mime_type=made.mime_type, owner="user",
                        content=content)]
    tool = CodeExecutorTool(file_repository=repo, user_id="user", input_files=files)
    code = """
from pptx import Presentation
prs = Presentation('[Video] Template.pptx')  # Exact filename required
print(prs.slides[0].shapes.title.text)
"""
    print(tool.execute(code=code))
    print("'[Video] Template.pptx'" in tool.args_schema["properties"]["code"]["description"])
# prints:
# A title
# True
