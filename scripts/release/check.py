#!/usr/bin/env python3
"""Uses the packages of a release as their users do. See scripts/check-release.sh, which runs it.

    check.py PACKAGES ROOT.tar WORK    deletes WORK at the end
"""
import contextlib, glob, os, pty, re, select, shutil, signal, subprocess, sys, time

packages, archive, work = sys.argv[1:]
root = os.path.join(work, "root")
PROGRAMS = ("loveseat", "photodrop")
failures = 0


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, **options)
    if done.returncode: raise Exception(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def check(condition, text):
    if not condition: raise Exception(text)


def package(pattern):
    found = glob.glob(os.path.join(packages, pattern))
    check(len(found) == 1, f"{pattern} is there {len(found)} times")
    return found[0]


def inside(*command):
    """Runs a command as root in the root file system."""
    return run("chroot", root, *command, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"})


def sums():
    """The checksums are right"""
    run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=packages)


def lintian():
    """lintian finds no error"""
    print(run("lintian", "--allow-root", "--fail-on", "error", "--suppress-tags", "initial-upload-closes-no-bugs",
              *sorted(glob.glob(os.path.join(packages, "*.deb")))), end="")


def unpacked():
    """The .tar.gz run below /usr/local with the libraries that README names"""
    inside("apt-get", "update")
    inside("apt-get", "install", "-y", "--no-install-recommends", "libsqlite3-0", "zlib1g", "libqrencode4", "libstdc++6")
    for program in PROGRAMS:
        run("tar", "-xzf", package(f"{program}-*-linux-*.tar.gz"), "--strip-components=1", "-C", os.path.join(root, "usr/local"))
        version = inside(f"/usr/local/bin/{program}", "--version").strip()
        check(f"{program}-{version}-linux" in package(f"{program}-*.tar.gz"), f"{program} says that it is {version}")
        documents = os.path.join(root, "usr/local/share/doc", program)
        for name in ("LICENSE", "NOTICES.txt", "README.md", "CHANGELOG.md"): check(os.path.getsize(f"{documents}/{name}") > 500, name)


def manual():
    """mandoc accepts the manual pages without a warning, and there is one for each command"""
    pages = glob.glob(os.path.join(root, "usr/local/share/man/man1/*.1"))
    run("mandoc", "-T", "lint", "-W", "warning", *pages)
    for program in PROGRAMS:
        commands = re.findall(r"^  ([a-z-]+) {2,}\S", inside(f"/usr/local/bin/{program}", "--help").split("SUBCOMMANDS:", 1)[1], re.M)
        missing = [each for each in commands if not os.path.exists(f"{root}/usr/local/share/man/man1/{program}-{each}.1")]
        check(len(commands) > 3 and not missing, f"no page of {program}: {missing}")


def completions():
    """The shells can read the completions"""
    share = os.path.join(root, "usr/local/share")
    for program in PROGRAMS:
        run("bash", "-n", f"{share}/bash-completion/completions/{program}")
        run("zsh", "-n", f"{share}/zsh/site-functions/_{program}")
        run("fish", "--no-execute", f"{share}/fish/vendor_completions.d/{program}.fish")
    offered = run("bash", "-c", f". {share}/bash-completion/completions/loveseat; COMP_WORDS=(loveseat se) COMP_CWORD=1; "
                  "COMP_LINE='loveseat se' COMP_POINT=11; _loveseat loveseat se loveseat; printf '%s\\n' \"${COMPREPLY[@]}\"",
                  env={**os.environ, "PATH": f"{root}/usr/local/bin:{os.environ['PATH']}"})
    check("serve" in offered.split(), f"bash offers {offered}")


def unit():
    """systemd accepts the unit, and calls it well confined"""
    with open(os.path.join(root, "usr/local/lib/systemd/system/loveseat@.service")) as file: text = file.read()
    path = os.path.join(work, "loveseat@.service")
    with open(path, "w") as file: file.write(text.replace("/usr/local/bin", os.path.join(root, "usr/local/bin")))
    run("systemd-analyze", "verify", "--man=no", path.replace("@", "@trips"))
    exposure = run("systemd-analyze", "security", "--offline=true", "--threshold=30", path.replace("@", "@trips"))
    print("   ", exposure.strip().splitlines()[-1])


def installed():
    """The .deb install with what they depend on, and nothing else"""
    shutil.rmtree(os.path.join(root, "usr/local"))
    os.mkdir(os.path.join(root, "usr/local"))
    inside("apt-get", "purge", "-y", "libsqlite3-0", "libqrencode4")
    inside("apt-get", "autoremove", "-y")
    for program in PROGRAMS: shutil.copy(package(f"{program}_*.deb"), os.path.join(root, "root"))
    inside("sh", "-c", "apt-get install -y --no-install-recommends /root/*.deb")
    for program in PROGRAMS: check(inside(program, "--version").strip() in package(f"{program}_*.deb"), "its version")
    inside("id", "loveseat")


class Hosts:
    """Two hosts in network namespaces, with a cable between them. Nothing that they send leaves the namespaces."""

    def __init__(self):
        self.names = [f"ls{os.getpid()}{letter}" for letter in "ab"]
        for name in self.names: run("ip", "netns", "add", name)
        first, second = self.names
        run("ip", "link", "add", "eth0", "netns", first, "type", "veth", "peer", "name", "eth0", "netns", second)
        for number, name in enumerate(self.names, 1):
            run("ip", "-n", name, "link", "set", "lo", "up")
            run("ip", "-n", name, "addr", "add", f"10.77.0.{number}/24", "dev", "eth0")
            run("ip", "-n", name, "link", "set", "eth0", "up")

    def close(self):
        for name in self.names: subprocess.run(["ip", "netns", "del", name], capture_output=True)


class Terminal:
    """A shell of a user, on a host, at a terminal, in the root file system."""

    def __init__(self, host, user, script):
        self.output = ""
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            os.environ.clear()
            os.environ.update(PATH="/usr/sbin:/usr/bin:/sbin:/bin", TERM="dumb", LC_ALL="C.UTF-8")
            os.execvp("ip", ["ip", "netns", "exec", host, "chroot", root, "runuser", "-u", user, "--", "bash", "-ec", f"cd; {script}"])

    def wait(self, pattern, seconds=30):
        """The first text that a pattern matches."""
        end = time.monotonic() + seconds
        while not (found := re.search(pattern, self.output)):
            readable, _, _ = select.select([self.terminal], [], [], max(0, end - time.monotonic()))
            try: text = os.read(self.terminal, 65536).decode() if readable else ""
            except OSError: text = ""
            check(text, f"{pattern} did not come: {self.output}")
            self.output += text
        return found

    def type(self, text): os.write(self.terminal, text.encode())

    def end(self):
        """Ends the program by Ctrl-C, and returns its exit code."""
        self.type("\x03")
        with contextlib.suppress(OSError):
            while text := os.read(self.terminal, 65536): self.output += text.decode()
        return os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])


def example():
    """README's two machines hold the same"""
    with open("README.md") as file: section = file.read().split("## Two machines, securely\n", 1)[1].split("\n## ", 1)[0]
    # The first block builds what is installed here.
    _, first, second = re.findall(r"^```sh\n(.*?)^```$", section, re.M | re.S)
    for user in ("first", "second"): inside("useradd", "--create-home", user)
    with contextlib.closing(Hosts()) as hosts:
        server = Terminal(hosts.names[0], "first", first)
        pin = server.wait(r"pin ([0-9a-f]{64})")[1]
        url = server.wait(r"wss://10\.77\.0\.1:55990/cities")[0]
        check("192.168.1.7:55990/cities" in second and "5f1c…" in second, "README has another example")
        client = Terminal(hosts.names[1], "second", second.replace("wss://192.168.1.7:55990/cities", url).replace("5f1c…", pin))
        client.wait("[Pp]assword")
        client.type("s3cret\n")
        client.wait(r"\b2\b")
        cities = lambda user: inside("runuser", "-u", user, "--", "sh", "-c", "cd; loveseat export " + {"first": "cities", "second": "copy"}[user])
        end = time.monotonic() + 20
        while cities("second") != cities("first"): check(time.monotonic() < end, f"{cities('second')}\n{client.output}")
        check("Oslo" in cities("second"), "Oslo is missing")
        code = client.end(), server.end()
        check(code == (0, 0), f"{code}\n{client.output}\n{server.output}")


def service():
    """What the unit starts serves a database, as the system's user"""
    with open(os.path.join(root, "usr/lib/systemd/system/loveseat@.service")) as file: text = file.read()
    commands = re.findall(r"^Exec(?:StartPre|Start)=(.*)$", text, re.M)
    check(len(commands) == 2, f"{commands}")
    inside("install", "-d", "-o", "loveseat", "-m", "700", "/var/lib/loveseat")
    inside("cp", "/usr/share/doc/loveseat/examples/trips.conf", "/etc/loveseat/trips.conf")
    inside("sh", "-c", "echo s3cret > /var/lib/loveseat/password && chown loveseat /var/lib/loveseat/password")
    script = "set -a; . /etc/loveseat/trips.conf; CREDENTIALS_DIRECTORY=/var/lib/loveseat LOVESEAT_IDENTITIES=/var/lib/loveseat/identities; "
    script += "\n".join(commands).replace("%i", "trips").replace("\nexec", "\n")
    with contextlib.closing(Hosts()) as hosts:
        server = Terminal(hosts.names[0], "loveseat", script)
        server.wait(r"wss://10\.77\.0\.1:55990/trips")
        check(server.end() == 0, server.output)


def removed():
    """The packages can be removed, and leave the databases"""
    inside("apt-get", "purge", "-y", *PROGRAMS)
    check(not os.path.exists(f"{root}/usr/bin/loveseat"), "it is still there")
    check(os.path.isdir(f"{root}/var/lib/loveseat/trips.loveseat"), "the database is gone")


def prepare():
    """A new root"""
    os.mkdir(root)
    run("tar", "-xf", archive, "-C", root)
    run("mount", "--bind", root, root)
    run("mount", "-t", "proc", "proc", os.path.join(root, "proc"))
    for name in ("null", "zero", "tty", "random", "urandom"):
        path = os.path.join(root, "dev", name)
        if not os.path.exists(path): open(path, "w").close()
        run("mount", "--bind", f"/dev/{name}", path)
    # The names of the archive are resolved as they are here.
    for name in ("resolv.conf", "hosts"): shutil.copy(f"/etc/{name}", os.path.join(root, "etc", name))


steps = [prepare, sums, lintian, unpacked, manual, completions, unit, installed, example, service, removed]
try:
    for step in steps:
        began = time.monotonic()
        try: step()
        except Exception as error:
            failures += 1
            print(f"FAILED {step.__doc__}: {error}", flush=True)
            if step is prepare: break
        else: print(f"ok     {step.__doc__} ({time.monotonic() - began:.1f} s)", flush=True)
finally:
    subprocess.run(["umount", "--recursive", "--lazy", root], capture_output=True)
    with open("/proc/self/mounts") as mounts: held = root in mounts.read()
    if not held: shutil.rmtree(work)
print(f"{len(steps) - failures} passed, {failures} failed")
sys.exit(failures > 0)
