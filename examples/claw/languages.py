"""What there is, and one program in each language that is installed."""
from vial.claw import CodeSandbox

sandbox = CodeSandbox()
print(*[row["language"] for row in sandbox.list_supported_languages()])
programs = {
    "python": "print('hi')",
    "javascript": "console.log('hi')",
    "bash": "echo hi",
    "ruby": "puts 'hi'",
}
print([sandbox.execute(code, language).stdout for language, code in programs.items()])
sandbox.cleanup_all_containers()
# prints:
# bash go javascript js python python3 ruby sh
# ['hi\n', 'hi\n', 'hi\n', 'hi\n']
