#!/bin/sh
# Builds the Debian package ceph-mgr-equilibrium from this checkout; needs nothing but dpkg-deb.
#
#   sh equilibrium_mgr/packaging/build_deb.sh [--output DIR] [--version VERSION]
#
# Prints the path of the package. The same commit gives the same bytes: all times in it are those
# of the last commit, or SOURCE_DATE_EPOCH. DEBFULLNAME and DEBEMAIL name the maintainer.
set -eu
umask 022
export LC_ALL=C
module=$(cd "$(dirname "$0")/.." && pwd)
here=$module/packaging
# shellcheck source=stage.sh
. "$here/stage.sh"

package=ceph-mgr-equilibrium
output=.
version=''
while [ $# -gt 0 ]; do
    case $1 in
        --output) output=${2:?--output needs a folder}; shift ;;
        --version) version=${2:?--version needs a version}; shift ;;
        -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p;}' "$0"; exit 0 ;;
        *) echo "build_deb.sh: unknown argument $1; see --help" >&2; exit 2 ;;
    esac
    shift
done
command -v dpkg-deb >/dev/null || { echo "build_deb.sh: dpkg-deb is missing" >&2; exit 1; }
[ -n "$version" ] || version=$(module_version)
SOURCE_DATE_EPOCH=$(module_epoch)
export SOURCE_DATE_EPOCH
maintainer="${DEBFULLNAME:-equilibrium developers} <${DEBEMAIL:-equilibrium@localhost}>"

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
chmod 755 "$tree"
doc=$tree/usr/share/doc/$package
mkdir -p "$tree/DEBIAN" "$tree/usr/share/ceph/mgr" "$doc"
stage_module "$tree/usr/share/ceph/mgr/equilibrium" "$version"
cp "$here/debian/copyright" "$doc/copyright"
mkdir -p "$tree/usr/share/lintian/overrides"
cp "$here/debian/overrides" "$tree/usr/share/lintian/overrides/$package"
[ ! -f "$module/../README.md" ] || gzip -9nc "$module/../README.md" >"$doc/README.md.gz"
for page in "$module"/doc/*.md; do gzip -9nc "$page" >"$doc/$(basename "$page").gz"; done
gzip -9nc >"$doc/changelog.gz" <<EOF
$package ($version) unstable; urgency=medium

  * Built from the source's version $version.

 -- $maintainer  $(date -u -R -d "@$SOURCE_DATE_EPOCH")
EOF

for script in preinst postinst prerm; do
    cp "$here/debian/$script" "$tree/DEBIAN/$script"
    chmod 755 "$tree/DEBIAN/$script"
done
(cd "$tree" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$tree/DEBIAN/md5sums"
cat >"$tree/DEBIAN/control" <<EOF
Package: $package
Version: $version
Architecture: all
Maintainer: $maintainer
Installed-Size: $(cd "$tree" && find usr -type f -printf '%s\n' |
    awk '{ total += int(($1 + 1023) / 1024) } END { print total }')
Depends: ceph-mgr (>= 16)
Section: admin
Priority: optional
Description: Ceph mgr module that fills devices equally, by their size
 Equilibrium moves placement group shards, by upmap, from the fullest OSDs to
 emptier ones until the devices of each class are equally full by bytes. It
 works inside ceph-mgr, within a limit on misplaced data, and takes the place
 of the built-in balancer while it is on.
 .
 After the installation nothing moves until the module is enabled and switched
 on: 'ceph mgr module enable equilibrium', 'ceph equilibrium on'.
EOF
find "$tree" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
mkdir -p "$output"
dpkg-deb --root-owner-group -Zxz --build "$tree" "$output/${package}_${version}_all.deb" >/dev/null
echo "$output/${package}_${version}_all.deb"
