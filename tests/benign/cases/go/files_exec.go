// Files, directories, temporary files, child processes, environment, pipes.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	check(os.MkdirAll("tree/a/b", 0o755))
	check(os.WriteFile("tree/one.txt", []byte("first\nsecond\n"), 0o644))
	check(os.WriteFile("tree/a/b/žluť.txt", []byte(strings.Repeat("x", 5000)), 0o600))
	check(os.Symlink("one.txt", "tree/link"))
	filepath.WalkDir("tree", func(path string, entry fs.DirEntry, err error) error {
		info, _ := entry.Info()
		fmt.Println(path, info.Mode(), entry.IsDir() || info.Size() > 0)
		return err
	})
	file, err := os.OpenFile("tree/one.txt", os.O_APPEND|os.O_RDWR, 0)
	check(err)
	fmt.Fprintln(file, "third")
	file.Seek(0, 0)
	for scanner := bufio.NewScanner(file); scanner.Scan(); {
		fmt.Println("line", scanner.Text())
	}
	check(file.Close())
	_, err = os.Open("tree/missing")
	fmt.Println(err, errors.Is(err, fs.ErrNotExist))
	temp, err := os.CreateTemp("", "benign")
	check(err)
	fmt.Println(strings.HasPrefix(temp.Name(), "/tmp/"), os.Remove(temp.Name()))
	check(os.RemoveAll("tree"))

	out, err := exec.Command("sh", "-c", "echo $GREETING; exit 3").Output()
	var exit *exec.ExitError
	fmt.Println(strings.TrimSpace(string(out)), errors.As(err, &exit), exit.ExitCode())
	sorter := exec.Command("sort")
	sorter.Stdin = strings.NewReader("b\na\n")
	sorter.Env = append(os.Environ(), "LC_ALL=C")
	out, err = sorter.CombinedOutput()
	fmt.Printf("%q %v\n", out, err)
	_, err = exec.LookPath("no-such-program")
	fmt.Println(errors.Is(err, exec.ErrNotFound))
	sleeper := exec.Command("sleep", "60")
	check(sleeper.Start())
	check(sleeper.Process.Signal(syscall.SIGTERM))
	sleeper.Wait()
	fmt.Println(sleeper.ProcessState.Sys().(syscall.WaitStatus).Signal())
	reader, writer, _ := os.Pipe()
	writer.WriteString("through a pipe")
	buffer := make([]byte, 100)
	n, _ := reader.Read(buffer)
	fmt.Println(string(buffer[:n]), os.Getenv("HOME"), os.Getenv("LANG"))
}
