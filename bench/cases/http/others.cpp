// others.cpp - the case `http` by nginx, with a configuration of its own in a folder that is gone
// afterwards, and in Go, by the server of go.go.
//
// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdio>
#include <fstream>

#include "cases/http/workload.hpp"

namespace {

using namespace bench;

constexpr const char* configuration = R"(daemon off;
master_process off;
error_log stderr crit;
pid nginx.pid;
events { worker_connections 4096; }
http {
    access_log off;
    keepalive_requests 1000000000;
    default_type text/plain;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    server {
        listen 127.0.0.1:PORT backlog=1024;
        tcp_nodelay on;
        location / { return 200 "Hello, world!"; }
    }
}
)";

// One that nobody has at the moment.
std::uint16_t free_port() {
    const int number = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof where;
    require(::bind(number, reinterpret_cast<sockaddr*>(&where), size) == 0, "bind");
    ::getsockname(number, reinterpret_cast<sockaddr*>(&where), &size);
    ::close(number);
    return ntohs(where.sin_port);
}

// A folder of its own, until it is destroyed.
class scratch {
public:
    scratch() {
        std::string name = (std::filesystem::temp_directory_path() / "weft-bench-XXXXXX").string();
        require(::mkdtemp(name.data()) != nullptr, "mkdtemp");
        path = name;
    }
    scratch(const scratch&) = delete;
    scratch& operator=(const scratch&) = delete;
    ~scratch() { std::filesystem::remove_all(path); }

    std::filesystem::path path;
};

// The first line of what it says to -v, and there it says it to stderr: nginx/1.22.1.
std::string version_of(const std::string& nginx) {
    std::FILE* const said = ::popen((nginx + " -v 2>&1").c_str(), "r");
    require(said != nullptr, "popen");
    char line[256] = "";
    const bool any = std::fgets(line, sizeof line, said) != nullptr;
    ::pclose(said);
    const std::string_view text = any ? line : "nginx";
    const std::size_t from = text.find("nginx/");
    return std::string(from == text.npos ? "nginx" : text.substr(from, text.find('\n') - from));
}

bool is_there(const std::string& program) {
    return std::system(("command -v " + program + " >/dev/null 2>&1").c_str()) == 0;
}

// Debian's is in /usr/sbin, which is not everybody's way.
std::string find_nginx() {
    for (const char* name : {"nginx", "/usr/sbin/nginx", "/usr/local/sbin/nginx"})
        if (is_there(name)) return name;
    return "";
}

void by_nginx(const settings& how, const std::string& program) {
    const scratch folder;
    const std::uint16_t port = free_port();
    std::string text = configuration;
    text.replace(text.find("PORT"), 4, std::to_string(port));
    std::ofstream(folder.path / "nginx.conf") << text;
    const std::vector<std::string> command = {
        program, "-p", folder.path.string() + "/", "-c", "nginx.conf", "-e", "stderr"};
    http::measure(how, "nginx", [&] { return server(command, port); });
}

}  // namespace

int main(int argc, char** argv) {
    const settings how = read_arguments(argc, argv);
    if (const std::string nginx = find_nginx(); !nginx.empty()) {
        about(version_of(nginx));
        by_nginx(how, nginx);
    } else {
        report_none({"nginx", "us", "one at a time"}, "nginx is not there");
    }
    if (std::filesystem::exists(beside("go"))) {
        const auto make = [] { return server({beside("go")}); };
        about(make().about());
        http::measure(how, "Go, net/http", make);
    } else {
        report_none({"Go, net/http", "us", "one at a time"}, "Go is not there");
    }
}
