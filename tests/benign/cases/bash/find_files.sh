# find, globs, permissions, links, archives, copies, and removing what was made.
mkdir -p tree/{a,b/c} "tree/with space"
for name in tree/one.txt tree/a/two.txt tree/b/c/three.log "tree/with space/four.txt"; do echo "$name" > "$name"; done
ln -s one.txt tree/link; ln tree/one.txt tree/hard
find tree -type f -name '*.txt' | sort
find tree -type f -print0 | sort -z | xargs -0 wc -c | tr -s ' '
find tree -type l -exec readlink {} \; ; find tree -type d | wc -l
find tree -name '*.log' -exec sh -c 'mv "$1" "${1%.log}.bak"' _ {} \; ; ls tree/b/c
chmod 640 tree/one.txt; stat -c '%a %s %h %F' tree/one.txt tree/link; chmod u=rwx,go= tree/a; stat -c %A tree/a
umask; umask 027; touch fresh; stat -c %a fresh
shopt -s globstar dotglob; touch tree/.hidden; echo tree/**/*.txt; echo tree/.h*
cp -a tree copy; diff -r tree copy && echo same; rm -r copy/b; diff -rq tree copy
tar -C tree -czf packed.tgz . && tar -tzf packed.tgz | sort | head -n 4; mkdir out; tar -C out -xzf packed.tgz; cat "out/with space/four.txt"
gzip -c tree/one.txt | zcat; truncate -s 1M sparse; stat -c '%s' sparse; du -b sparse | cut -f1
test -f tree/one.txt -a ! -d tree/one.txt && [ -L tree/link ] && [ tree/hard -ef tree/one.txt ] && echo tests
dd if=/dev/zero of=zeros bs=1024 count=100 status=none; cmp zeros <(head -c 102400 /dev/zero) && echo zeros
mktemp -u /tmp/benign.XXXX | wc -c; cat missing 2>&1; rmdir tree 2>&1; rm -rf tree copy out; ls
install -m 755 /dev/stdin script <<< 'echo "installed $1"'; ./script ok; realpath /usr/../tmp/./
