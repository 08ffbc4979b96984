// go.go - the case `echo` on goroutines and package net. See workload.hpp.
//
// SPDX-License-Identifier: Apache-2.0
package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
)

func require(condition bool, what string) {
	if !condition {
		fmt.Fprintln(os.Stderr, "wrong:", what)
		os.Exit(1)
	}
}

// CPU time of this process so far, in microseconds.
func cpuTime() float64 {
	var used syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1e3
}

func echo(peer net.Conn, done *sync.WaitGroup) {
	defer done.Done()
	defer peer.Close()
	buffer := make([]byte, 4096)
	for {
		n, err := peer.Read(buffer)
		if err != nil {
			return
		}
		if _, err = peer.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func serve(count, messages int) float64 {
	before := cpuTime()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	require(err == nil, "listen")
	port := listener.Addr().(*net.TCPAddr).Port
	self, _ := os.Executable()
	client := exec.Command(filepath.Join(filepath.Dir(self), "client"), strconv.Itoa(port),
		strconv.Itoa(count), strconv.Itoa(messages))
	require(client.Start() == nil, "client")
	var done sync.WaitGroup
	for i := 0; i < count; i++ {
		peer, err := listener.Accept()
		require(err == nil, "accept")
		done.Add(1)
		go echo(peer, &done)
	}
	done.Wait()
	require(client.Wait() == nil, "what the client got back")
	listener.Close()
	return (cpuTime() - before) / float64(messages)
}

func main() {
	runtime.GOMAXPROCS(1)
	fmt.Printf("{\"about\": \"%s\"}\n", runtime.Version())
	for _, count := range []int{50, 1000} {
		messages := 200000
		if len(os.Args) > 1 {
			messages = 2 * count
		}
		at := strconv.Itoa(count)
		if count == 1000 {
			at = "1,000"
		}
		fmt.Printf("{\"row\": \"Go\", \"at\": \"%s connections\", \"unit\": \"us\", \"value\": %g}\n",
			at, serve(count, messages))
	}
}
