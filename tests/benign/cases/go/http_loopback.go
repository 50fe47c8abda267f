// net/http on loopback: server, client, JSON, status codes, many at once.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sort"
	"strings"
	"sync"
)

func main() {
	mux := http.NewServeMux()
	mux.HandleFunc("/hello", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello %s", r.URL.Query().Get("name"))
	})
	mux.HandleFunc("/sum", func(w http.ResponseWriter, r *http.Request) {
		var numbers []int
		if err := json.NewDecoder(r.Body).Decode(&numbers); err != nil {
			http.Error(w, "bad numbers", http.StatusBadRequest)
			return
		}
		total := 0
		for _, n := range numbers {
			total += n
		}
		json.NewEncoder(w).Encode(map[string]int{"total": total})
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	client := server.Client()
	show := func(response *http.Response, err error) string {
		if err != nil {
			return "failed"
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		return fmt.Sprint(response.StatusCode, " ", strings.TrimSpace(string(body)))
	}
	fmt.Println(show(client.Get(server.URL + "/hello?name=gopher")))
	fmt.Println(show(client.Post(server.URL+"/sum", "application/json", bytes.NewBufferString("[1,2,3]"))))
	fmt.Println(show(client.Post(server.URL+"/sum", "application/json", strings.NewReader("nope"))))
	fmt.Println(show(client.Get(server.URL + "/none")))
	var group sync.WaitGroup
	answers := make([]string, 10)
	for n := range answers {
		group.Add(1)
		go func(n int) {
			defer group.Done()
			answers[n] = show(client.Get(fmt.Sprint(server.URL, "/hello?name=", n)))
		}(n)
	}
	group.Wait()
	sort.Strings(answers)
	fmt.Println(strings.Join(answers, ", "))
	listener, _ := net.Listen("tcp", "127.0.0.1:0")
	go func() {
		c, _ := listener.Accept()
		io.Copy(c, c)
		c.Close()
	}()
	connection, _ := net.Dial("tcp", listener.Addr().String())
	connection.Write([]byte("raw echo"))
	connection.(*net.TCPConn).CloseWrite()
	echoed, _ := io.ReadAll(connection)
	fmt.Println(string(echoed))
}
