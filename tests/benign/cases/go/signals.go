// Signals by channel, unix sockets, mmap by system call, and the runtime's own facts.
package main

import (
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
)

func main() {
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGUSR1)
	syscall.Kill(os.Getpid(), syscall.SIGUSR1)
	fmt.Println(<-heard)
	listener, err := net.Listen("unix", "door")
	fmt.Println(err)
	go func() {
		c, _ := listener.Accept()
		c.Write([]byte("opened"))
		c.Close()
	}()
	c, _ := net.Dial("unix", "door")
	buffer := make([]byte, 20)
	n, _ := c.Read(buffer)
	fmt.Println(string(buffer[:n]))
	memory, err := syscall.Mmap(-1, 0, 1<<16, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	memory[100] = 7
	fmt.Println(len(memory), err, syscall.Munmap(memory))
	block := make([]byte, 64<<20)
	for i := 0; i < len(block); i += 4096 {
		block[i] = byte(i >> 12)
	}
	runtime.GC()
	debug.FreeOSMemory()
	fmt.Println(block[4096], runtime.GOOS, runtime.NumCPU() >= 1, runtime.NumGoroutine() >= 1)
	addresses, err := net.LookupHost("127.0.0.1")
	fmt.Println(addresses, err)
	signal.Reset()
	syscall.Kill(os.Getpid(), syscall.SIGTERM)
	select {}
}
