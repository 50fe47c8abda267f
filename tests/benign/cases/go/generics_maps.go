// Generics, sorted maps, interfaces, embedding, closures, defer order.
package main

import (
	"container/heap"
	"errors"
	"fmt"
	"sort"
	"strings"
)

type ordered interface{ ~int | ~float64 | ~string }

func Map[T, U any](items []T, f func(T) U) []U {
	out := make([]U, 0, len(items))
	for _, item := range items {
		out = append(out, f(item))
	}
	return out
}

func Keys[K ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Slice(keys, func(i, j int) bool { return keys[i] < keys[j] })
	return keys
}

type Stack[T any] struct{ items []T }

func (s *Stack[T]) Push(item T) { s.items = append(s.items, item) }
func (s *Stack[T]) Pop() (item T, err error) {
	if len(s.items) == 0 {
		return item, errors.New("empty stack")
	}
	item, s.items = s.items[len(s.items)-1], s.items[:len(s.items)-1]
	return item, nil
}

type intHeap []int

func (h intHeap) Len() int           { return len(h) }
func (h intHeap) Less(i, j int) bool { return h[i] < h[j] }
func (h intHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *intHeap) Push(x any)        { *h = append(*h, x.(int)) }
func (h *intHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

type shape interface{ Area() float64 }
type named struct{ Name string }
type square struct {
	named
	side float64
}

func (s square) Area() float64 { return s.side * s.side }
func (n named) String() string { return "<" + n.Name + ">" }
func describe(value any) string {
	switch v := value.(type) {
	case nil:
		return "nil"
	case int, float64:
		return fmt.Sprint("number ", v)
	case fmt.Stringer:
		return "stringer " + v.String()
	default:
		return fmt.Sprintf("%T", v)
	}
}

func risky() (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("recovered: %v", r)
		}
	}()
	var list []int
	return fmt.Errorf("never %d", list[3])
}

func main() {
	words := map[string]int{}
	for _, w := range strings.Fields("the cat the dog the end") {
		words[w]++
	}
	for _, key := range Keys(words) {
		fmt.Print(key, "=", words[key], " ")
	}
	fmt.Println(Map([]int{1, 2, 3}, func(n int) string { return strings.Repeat("*", n) }))
	var stack Stack[rune]
	stack.Push('a')
	r, err := stack.Pop()
	_, empty := stack.Pop()
	fmt.Println(string(r), err, empty)
	h := &intHeap{5, 2, 8}
	heap.Init(h)
	heap.Push(h, 1)
	fmt.Println(heap.Pop(h), heap.Pop(h))
	var s shape = square{named{"sq"}, 3}
	fmt.Println(s.Area(), describe(s), describe(2.5), describe(nil), describe([]int{}))
	fmt.Println(risky())
	wrapped := fmt.Errorf("outer: %w", errors.New("inner"))
	fmt.Println(wrapped, errors.Unwrap(wrapped))
	for n := 0; n < 3; n++ {
		defer fmt.Println("deferred", n)
	}
	slice := []int{1, 2, 3, 4}
	other := append(slice[:1], 9)
	fmt.Println(slice, other, len(slice[1:3]), cap(slice[1:3]))
}
