#!/bin/sh
# Installs equilibrium from this checkout onto a host whose Ceph comes from packages, or removes it.
#
#   sh equilibrium_mgr/packaging/install.sh             install, or upgrade in place
#   sh equilibrium_mgr/packaging/install.sh --remove    remove; the module has to be disabled first
#
#   --root DIR          the system whose files lie below DIR (an image, a test); needs no root
#   --module-path DIR   the mgr's mgr_module_path, where that is not /usr/share/ceph/mgr
#   --to DIR            only copy the module into DIR, for a mount into a container
#   --force             with --remove: remove although it is enabled
set -eu
umask 022
module=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=stage.sh
. "$module/packaging/stage.sh"

path=/usr/share/ceph/mgr
root='' own_path='' to='' remove='' force=''

say() { printf '%s\n' "$@"; }
refuse() { say "install.sh: $1" >&2; exit "${2:-1}"; }

while [ $# -gt 0 ]; do
    case $1 in
        --root | --module-path | --to)
            [ $# -ge 2 ] || refuse "$1 needs a folder" 2
            case $1 in
                --root) root=${2%/} ;;
                --module-path) path=$2 own_path=1 ;;
                --to) to=$2 ;;
            esac
            shift ;;
        --remove) remove=1 ;;
        --force) force=1 ;;
        -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p;}' "$0"; exit 0 ;;
        *) refuse "unknown argument $1; see --help" 2 ;;
    esac
    shift
done

# installed_version FOLDER: what stands there, empty if nothing does
installed_version() {
    [ ! -e "$1/module.py" ] || sed -n 's/^VERSION = "\(.*\)"$/\1/p' "$1/version.py" 2>/dev/null ||
        echo unknown
}

# python_of_mgr: such as 3.11, from the library that ceph-mgr is linked with; empty if it cannot
# be told, and then the module itself refuses on a Python that is too old
python_of_mgr() {
    ldd "$root/usr/bin/ceph-mgr" 2>/dev/null |
        sed -n 's/.*libpython\(3\.[0-9]*\).*/\1/p' | head -1
}

check_ceph() {
    [ -e "$root$path/mgr_module.py" ] || refuse "no Ceph mgr from packages here: $root$path/\
mgr_module.py is missing. For containers (cephadm, Rook) see equilibrium_mgr/doc/install.md."
    [ -n "$own_path" ] || [ -e "$root/usr/bin/ceph-mgr" ] ||
        refuse "no ceph-mgr here: $root/usr/bin/ceph-mgr is missing"
    python=$(python_of_mgr)
    case $python in
        3.[0-8]) refuse "ceph-mgr here has Python $python; equilibrium needs 3.9 or newer" ;;
    esac
}

# check_owner: a folder that a package has brought is the package manager's
check_owner() {
    file=$path/equilibrium/module.py
    [ -e "$root$file" ] || return 0
    if owner=$(dpkg-query --admindir="$root/var/lib/dpkg" -S "$file" 2>/dev/null) ||
        { [ -e "$root/var/lib/rpm" ] &&   # else rpm may make one
            owner=$(rpm --root "${root:-/}" -qf --qf '%{NAME}' "$file" 2>/dev/null); }; then
        refuse "$target belongs to the package ${owner%%:*}: use the package manager"
    fi
}

# replace NEW: NEW becomes the target; what was there goes, and comes back should that fail
replace() {
    old=$(dirname "$target")/../.equilibrium.old.$$
    rm -rf "$old"
    if [ -e "$target" ] || [ -L "$target" ]; then
        mv -T "$target" "$old"
    fi
    if ! mv -T "$1" "$target"; then
        [ ! -e "$old" ] || mv -T "$old" "$target"
        return 1
    fi
    rm -rf "$old"
}

install_module() {
    check_ceph
    check_owner
    before=$(installed_version "$target")
    version=$(module_version)
    # beside the module path, not in it: a mgr that starts meanwhile would load it as a module
    new=$root$path/../.equilibrium.new.$$
    trap 'rm -rf "$new"' EXIT
    rm -rf "$new"
    stage_module "$new" "$version"
    [ "$(id -u)" -ne 0 ] || chown -R 0:0 "$new"
    replace "$new"
    if [ -z "$root" ] && command -v restorecon >/dev/null; then
        restorecon -R "$target" || say "warning: restorecon failed for $target" >&2
    fi
    tell_next
}

tell_next() {
    if [ -z "$before" ]; then
        say "equilibrium $version is installed in $target." \
            "Next: the same on every host with a mgr, then restart the mgrs, standby ones first:" \
            "    systemctl restart ceph-mgr.target" \
            "and once, anywhere:" \
            "    ceph mgr module enable equilibrium" \
            "    ceph equilibrium status"
    elif [ "$before" = "$version" ]; then
        say "equilibrium $version was installed in $target already; its files are new."
    else
        say "equilibrium in $target is upgraded from $before to $version." \
            "A running mgr keeps the old code. Next: the same on every host with a mgr, then on" \
            "those with standby mgrs:" \
            "    systemctl restart ceph-mgr.target" \
            "and once, anywhere:" \
            "    ceph mgr fail" \
            "What is being executed goes on after that."
    fi
}

# refuse_if_enabled: asks the cluster, where one answers
refuse_if_enabled() {
    [ -z "$force" ] && [ -z "$root" ] && command -v ceph >/dev/null || return 0
    if ! modules=$(timeout 20 ceph --connect-timeout 10 mgr module ls --format json 2>/dev/null)
    then
        say "warning: the cluster does not answer, so whether the module is disabled is unknown" >&2
    elif printf %s "$modules" | tr -d ' \n' | grep -q '"enabled_modules":\[[^]]*"equilibrium"'; then
        refuse "equilibrium is enabled. First, once for the cluster:
    ceph equilibrium off
    ceph mgr module disable equilibrium
then remove it on every host with a mgr. (--force removes it all the same.)"
    fi
}

remove_module() {
    check_owner
    if [ ! -e "$target" ] && [ ! -L "$target" ]; then
        say "equilibrium is not installed in $root$path."
        return
    fi
    refuse_if_enabled
    rm -rf "$target"
    say "equilibrium is removed from $target." \
        "What stays: the upmap items that it has set, its options ('ceph config dump') and its" \
        "stored plans ('ceph config-key ls'). 'Going back' in equilibrium_mgr/doc/operate.md tells" \
        "what follows for the data."
}

if [ -n "$to" ]; then
    path=/.. own_path=1 target=$to
    [ -d "$(dirname "$to")" ] || refuse "$(dirname "$to") is not a folder"
    new=$to.new.$$
    trap 'rm -rf "$new"' EXIT
    version=$(module_version)
    stage_module "$new" "$version"
    rm -rf "$to"
    mv -T "$new" "$to"
    say "equilibrium $version lies in $to."
    exit 0
fi
target=$root$path/equilibrium
[ -n "$root" ] || [ "$(id -u)" -eq 0 ] || refuse "needs root: run it with sudo"
if [ -n "$remove" ]; then remove_module; else install_module; fi
