# Files, directories, globbing, temp files, modes, locks.
require "fileutils"
require "pathname"
require "tempfile"

FileUtils.mkdir_p("tree/a/b")
{ "tree/one.txt" => "1\n2\n3\n", "tree/a/two.txt" => "dvě", "tree/a/b/three.log" => "x" * 3000 }.each { |path, text| File.write(path, text) }
puts Dir.glob("tree/**/*").sort, Dir["tree/**/*.txt"].sum { |f| File.size(f) }
File.open("tree/one.txt", "a+") { |f| f.puts "four"; f.rewind; p f.readlines(chomp: true), f.pos }
File.rename("tree/a/two.txt", "tree/a/dva.txt")
FileUtils.cp_r("tree/a", "tree/copy")
File.symlink("one.txt", "tree/link")
p File.readlink("tree/link"), File.symlink?("tree/link"), File.stat("tree/one.txt").mode.to_s(8), File.read("tree/copy/dva.txt")
File.open("tree/bin", "wb") { |f| f.write([1, 65535, 2.5, "abc"].pack("CnEa5")) }
p File.binread("tree/bin").unpack("CnEa5"), IO.readlines("tree/one.txt").first, File.extname("a/b.tar.gz"), Pathname("a/../b").cleanpath.to_s
Tempfile.create("benign") { |f| f << "temp"; f.flush; p File.read(f.path), f.path.start_with?("/tmp/") }
Dir.mktmpdir { |dir| p Dir.empty?(dir) }
File.open("lock", "w") { |f| p f.flock(File::LOCK_EX | File::LOCK_NB) }
begin
  File.read("tree/missing")
rescue Errno::ENOENT => e
  puts e.message
end
p Dir.children("tree").sort, File.directory?("tree/a"), FileTest.exist?("none")
FileUtils.rm_rf("tree")
p Dir.exist?("tree")
