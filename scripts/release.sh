#!/usr/bin/env bash
# Makes the packages of a release: loveseat and photodrop as .tar.gz and .deb, and SHA256SUMS, in .build-release/packages.
#   scripts/release.sh                    builds both programs, with the Swift runtime linked statically; the checkout has to be clean
#   scripts/release.sh --relink FOLDER    links what a release build has compiled already, such as .build/release, in seconds
#   scripts/release.sh --binaries FOLDER  packs the programs of a folder as they are
#   --output FOLDER                       where to put the packages
# The same commit, toolchain and versions of the libraries (Package.resolved, which is put beside the packages) give the same bytes from any
# checkout: programs know how long the names of their source files are, so they are always built in /var/tmp/loveseat-release, which stays, so
# that the next build is quick. LEVEL is the level of compression, 1 to 9. MAINTAINER is the maintainer that the .deb name.
set -euo pipefail
start="$PWD"
cd "$(dirname "$0")/.."
root="$PWD"
usage() { sed -n '2,/^set/{/^#/s/^# \?//p}' "$root/scripts/release.sh" >&2; exit 64; }
# A relative folder is one of the caller's.
folder() { (cd "$start" && realpath -m -- "$1"); }
output="$root/.build-release/packages" binaries= relink=
while [ $# -gt 0 ]; do
    [ -n "${2:-}" ] || usage
    case "$1" in
        --binaries) binaries=$(folder "$2") ;;
        --relink) relink=$(folder "$2") ;;
        --output) output=$(folder "$2") ;;
        *) usage ;;
    esac
    shift 2
done
[ -z "$binaries" ] || [ -z "$relink" ] || usage
for source in "$binaries" "$relink"; do
    [ -z "$source" ] || [ -d "$source" ] || { echo "There is no folder $source." >&2; exit 66; }
done
# Packages of an earlier run are replaced, and nothing else.
others=$(if [ -e "$output" ]; then find "$output" -maxdepth 1 ! \( -path "$output" -type d \) ! \( -type f \( -name 'loveseat[-_]*.tar.gz' \
    -o -name 'loveseat_*.deb' -o -name 'photodrop-*.tar.gz' -o -name 'photodrop_*.deb' -o -name Package.resolved -o -name SHA256SUMS \) \); fi)
[ -z "$others" ] || { echo "$output has files that are not packages of a release: name another --output." >&2; exit 73; }
[ "$(uname)" = Linux ] || { echo "Packages are made on Linux only." >&2; exit 69; }

programs=(loveseat photodrop)
declare -A entry=([loveseat]=LoveseatCLI_main [photodrop]=photodrop_main)
machine=$(uname -m)
SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}"
export SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC
umask 022
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Builds the committed files in a folder of its own, so that neither flags nor traits of other builds matter.
build() {
    local changes place=/var/tmp/loveseat-release
    # Git refuses, for example, a checkout of another user.
    changes=$(git status --porcelain)
    [ -z "$changes" ] || { echo "Commit or stash first: a release is made from a clean checkout." >&2; exit 65; }
    mkdir -p -m 700 "$place"
    [ -O "$place" ] && [ ! -L "$place" ] || { echo "$place belongs to somebody else: remove it first." >&2; exit 73; }
    exec 9> "$place/lock"
    flock --nonblock 9 || { echo "Another release is being built: wait until it is done." >&2; exit 75; }
    rm -rf "$place/source"
    mkdir "$place/source"
    git archive HEAD | tar --extract --directory "$place/source"
    if [ -e Package.resolved ]; then cp Package.resolved "$place/source/"; fi
    unset LOVESEAT_CHECKED LOVESEAT_STRICT
    export SWIFT_DETERMINISTIC_HASHING=1 CONFIGURATION=release SCRATCH="$place/build"
    # Without this folder in the programs.
    local options=(--static-swift-stdlib --disable-index-store -debug-info-format none -Xcc "-ffile-prefix-map=$place=." -Xlinker -s)
    swift build -c release --package-path "$place/source" --scratch-path "$SCRATCH" --product loveseat "${options[@]}" 9>&-
    "$place/source/scripts/build-package.sh" Examples/PhotoDrop --product photodrop "${options[@]}" 9>&-
    cp "$place/source/Package.resolved" .
    built="$SCRATCH/release"
}

# What was compiled for a dynamic runtime does not name the libraries that only a static one needs.
link() {
    local foundation=(-lCoreFoundation -l_FoundationICU -l_FoundationCShims -l_FoundationCollections -lswift_Builtin_float)
    mkdir "$work/built"
    for program in "${programs[@]}"; do
        cp -r "$relink/$program.product" "$work/built/"
        swiftc -static-stdlib -emit-executable -module-name "$program" -o "$work/built/$program" -Xlinker --gc-sections -Xlinker -s \
            -Xlinker --defsym -Xlinker "main=${entry[$program]}" "@$relink/$program.product/Objects.LinkFileList" \
            -lqrencode -lz -lstdc++ -lm "${foundation[@]}" > "$work/log" 2>&1 \
            || { tail -n 5 "$work/log" >&2; echo "$program cannot be linked: build it first, as it is now, in $relink." >&2; exit 1; }
    done
    built="$work/built"
    ln -s "$(realpath "$relink/../../checkouts")" "$(realpath "$relink/../../workspace-state.json")" "$built/"
}

# Puts everything of a program below the folder $1, whose bin, share and lib are to be those of the folder $2.
lay() {
    local program="$1" tree="$2" prefix="$3" completions="$4"
    install -D "$built/$program" "$tree/bin/$program"
    strip --strip-all "$tree/bin/$program"
    python3 scripts/release/manual.py "$built/$program" "$tree/share/man/man1"
    install -d "$tree"/share/{bash-completion/completions,fish/vendor_completions.d,"zsh/$completions","doc/$program"}
    "$built/$program" --generate-completion-script bash | sed '1{/^#!/d}' > "$tree/share/bash-completion/completions/$program"
    "$built/$program" --generate-completion-script zsh > "$tree/share/zsh/$completions/_$program"
    "$built/$program" --generate-completion-script fish > "$tree/share/fish/vendor_completions.d/$program.fish"
    python3 scripts/release/notices.py "$built" "$program" > "$tree/share/doc/$program/NOTICES.txt"
    if [ "$program" = loveseat ]; then
        install -D -m 644 scripts/release/trips.conf "$tree/share/doc/loveseat/examples/trips.conf"
        install -d "$tree/lib/systemd/system"
        sed "s|@BIN@|$prefix/bin|" scripts/release/loveseat@.service > "$tree/lib/systemd/system/loveseat@.service"
        cp README.md docs/command-line.md "$tree/share/doc/loveseat/"
    else
        cp Examples/PhotoDrop/README.md "$tree/share/doc/photodrop/"
    fi
}

# Gives every file the time of the commit, and what everybody may do with it, whatever the checkout's own are.
dated() { chmod -R u=rwX,go=rX "$1"; find "$1" -print0 | xargs -0 touch --no-dereference --date="@$SOURCE_DATE_EPOCH"; }

tarball() {
    local program="$1" name="$1-$version-linux-$machine"
    lay "$program" "$work/$name" /usr/local site-functions
    cp LICENSE CHANGELOG.md "$work/$name/share/doc/$program/"
    dated "$work/$name"
    tar --create --directory "$work" --sort=name --owner=0 --group=0 --numeric-owner --format=gnu "$name" \
        | gzip --no-name "-${LEVEL:-9}" > "$output/$name.tar.gz"
}

# The packages that the libraries of a program are in.
depends() {
    mkdir -p "$work/shlibs/debian"
    printf 'Source: loveseat\n\nPackage: loveseat\nArchitecture: any\n' > "$work/shlibs/debian/control"
    (cd "$work/shlibs" && dpkg-shlibdeps -O "$1" 2> "$work/log" || { cat "$work/log" >&2; exit 1; }) | sed 's/^shlibs:Depends=//'
}

deb() {
    local program="$1" architecture tree="$work/deb-$1" doc="share/doc/$1" script
    architecture=$(dpkg --print-architecture)
    lay "$program" "$tree/usr" /usr vendor-completions
    doc="$tree/usr/$doc"
    python3 scripts/release/notices.py --copyright "$built" "$program" > "$doc/copyright"
    gzip --no-name -9 --stdout CHANGELOG.md > "$doc/changelog.gz"
    gzip --no-name -9 --stdout > "$doc/changelog.Debian.gz" << END
$program ($version-1) unstable; urgency=medium

  * Version $version; changelog.gz says what is new.

 -- $maintainer  $(date --utc --date="@$SOURCE_DATE_EPOCH" '+%a, %d %b %Y %H:%M:%S +0000')
END
    # A library has a copy of zlib within it, under names of its own.
    install -d "$tree/usr/share/lintian/overrides"
    echo "$program: embedded-library zlib *" > "$tree/usr/share/lintian/overrides/$program"
    gzip --no-name -9 "$tree"/usr/share/man/man1/*.1
    install -d "$tree/DEBIAN"
    if [ "$program" = loveseat ]; then install -d "$tree/etc/loveseat"; fi
    for script in postinst prerm postrm; do
        if [ -e "scripts/release/$program.$script" ]; then install "scripts/release/$program.$script" "$tree/DEBIAN/$script"; fi
    done
    (cd "$tree" && find usr -type f -print0 | sort -z | xargs -0 md5sum > DEBIAN/md5sums)
    sed -e "s|@VERSION@|$version-1|" -e "s|@ARCHITECTURE@|$architecture|" -e "s|@MAINTAINER@|$(sed 's/[\\&|]/\\&/g' <<< "$maintainer")|" \
        -e "s|@SIZE@|$(du --summarize --apparent-size --block-size=1024 "$tree" | cut -f 1)|" -e "s|@DEPENDS@|$(depends "$tree/usr/bin/$program")|" \
        "scripts/release/$program.control" > "$tree/DEBIAN/control"
    dated "$tree"
    dpkg-deb --root-owner-group -Zxz "-z${LEVEL:-6}" --threads-max=2 --build "$tree" "$output/${program}_$version-1_$architecture.deb" > "$work/log"
}

maintainer="${MAINTAINER:-Loveseat maintainers <maintainers@loveseat.invalid>}"
if [ -n "$binaries" ]; then built="$binaries"; elif [ -n "$relink" ]; then link; else build; fi
rm -rf "$output"
mkdir -p "$output"
for program in "${programs[@]}"; do
    version=$("$built/$program" --version)
    tarball "$program"
    if command -v dpkg-shlibdeps > /dev/null; then deb "$program"; else echo "*** Without dpkg-dev, there is no .deb of $program." >&2; fi
done
if [ -e Package.resolved ]; then cp Package.resolved "$output/"; fi
(cd "$output" && sha256sum -- * > SHA256SUMS)
ls -l "$output"
