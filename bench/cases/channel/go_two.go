// go_two.go - a channel of Go with GOMAXPROCS=2. See workload.hpp.
//
// SPDX-License-Identifier: Apache-2.0
package main

import (
	"fmt"
	"os"
	"runtime"
	"time"
)

func stream(items uint64) float64 {
	c := make(chan uint64, 128)
	begun := time.Now()
	go func() {
		for i := uint64(1); i <= items; i++ {
			c <- i
		}
		close(c)
	}()
	sum := uint64(0)
	for item := range c {
		sum += item
	}
	took := time.Since(begun)
	if sum != items*(items+1)/2 {
		fmt.Fprintln(os.Stderr, "wrong: stream")
		os.Exit(1)
	}
	return float64(took.Nanoseconds()) / float64(items)
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "--help" {
		fmt.Println("go_two.go - a channel of Go with GOMAXPROCS=2. See workload.hpp. " +
			"Argument: --quick.")
		return
	}
	runtime.GOMAXPROCS(2)
	items := uint64(4000000)
	if len(os.Args) > 1 && os.Args[1] == "--quick" {
		items = 400
	}
	fmt.Printf("{\"about\": \"%s\"}\n", runtime.Version())
	stream(items / 10)
	fmt.Printf("{\"row\": \"Go, two, stream\", \"unit\": \"ns\", \"value\": %g}\n", stream(items))
}
