// go.go - Go's channels with GOMAXPROCS=1. See workload.hpp.
//
// SPDX-License-Identifier: Apache-2.0
package main

import (
	"fmt"
	"os"
	"runtime"
	"time"
)

func require(condition bool, what string) {
	if !condition {
		fmt.Fprintln(os.Stderr, "wrong:", what)
		os.Exit(1)
	}
}

func pingPong(items uint64) float64 {
	there, back := make(chan uint64), make(chan uint64)
	go func() {
		for ball := range there {
			back <- ball + 1
		}
	}()
	begun := time.Now()
	ball := uint64(0)
	for ball < items {
		there <- ball + 1
		ball = <-back
	}
	took := time.Since(begun)
	close(there)
	require(ball == items, "ping-pong")
	return float64(took.Nanoseconds()) / float64(items)
}

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
	require(sum == items*(items+1)/2, "stream")
	return float64(took.Nanoseconds()) / float64(items)
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "--help" {
		fmt.Println("go.go - Go's channels with GOMAXPROCS=1. See workload.hpp. Argument: " +
			"--quick.")
		return
	}
	runtime.GOMAXPROCS(1)
	items := uint64(2000000)
	if len(os.Args) > 1 && os.Args[1] == "--quick" {
		items = 200
	}
	fmt.Printf("{\"about\": \"%s\"}\n", runtime.Version())
	pingPong(items / 10)
	fmt.Printf("{\"row\": \"Go, ping-pong\", \"unit\": \"ns\", \"value\": %g}\n", pingPong(items))
	stream(items / 5)
	fmt.Printf("{\"row\": \"Go, stream\", \"unit\": \"ns\", \"value\": %g}\n", stream(2*items))
}
