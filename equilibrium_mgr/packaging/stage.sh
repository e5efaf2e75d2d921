# shellcheck shell=sh disable=SC2154
# Read by install.sh and build_deb.sh, not run: what the module's files are, and which version.
# `module` has to name the folder equilibrium_mgr of the checkout.

# git_here ARGUMENT...: git in the checkout, whoever owns it; fails where there is no git
git_here() {
    git -c safe.directory='*' -C "$module" "$@" 2>/dev/null
}

# module_version: VERSION of version.py; on a commit without a tag also the commit's time and name,
# so that a later build is a newer version
module_version() {
    version=$(sed -n 's/^VERSION = "\(.*\)"$/\1/p' "$module/version.py")
    if commit=$(git_here log -1 --format=%h -- .) && [ -n "$commit" ] &&
        ! git_here describe --exact-match --tags HEAD >/dev/null; then
        version="$version+git$(date -u -d "@$(module_epoch)" +%Y%m%d%H%M%S).$commit"
        [ -z "$(git_here status --porcelain -- .)" ] || version="$version.dirty"
    fi
    echo "$version"
}

# module_epoch: the time that all files get: SOURCE_DATE_EPOCH, the last commit, the newest file
module_epoch() {
    if [ -n "${SOURCE_DATE_EPOCH:-}" ]; then
        echo "$SOURCE_DATE_EPOCH"
    elif ! git_here log -1 --format=%ct -- . | grep .; then
        list_module | (cd "$module" && xargs stat -c %Y) | sort -n | tail -1
    fi
}

# list_module: the files that a mgr needs: Python, and what monitoring reads
list_module() {
    (cd "$module" && find . -name __pycache__ -prune -o -path ./packaging -prune -o -type f \
        \( -name '*.py' -o -name '*.json' -o -name '*.yml' -o -name '*.yaml' \) -print) |
        LC_ALL=C sort
}

# stage_module FOLDER VERSION: copy the module into a folder that is not there yet; modes and times
# as Ceph's own modules have them, version.py with that version
stage_module() {
    mkdir -m 755 "$1"
    staged=$(cd "$1" && pwd)
    list_module | (cd "$module" && xargs cp --parents -t "$staged")
    [ -f "$1/module.py" ] || return 1
    sed -i "s/^VERSION = .*/VERSION = \"$2\"/" "$1/version.py"
    find "$1" -type d -exec chmod 755 {} +
    find "$1" -type f -exec chmod 644 {} +
    find "$1" -exec touch -h -d "@$(module_epoch)" {} +
}
