#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Inside the rig, before the work: images on the disk, a server that has them,
# and its client on the same machine. bench/tables/servers.py says
#
#   SERVER     whose function serve_SERVER below is called, with the words that
#              follow the name
#   IMAGES_MB  how large each image is
#   TREES_MB   of the images after these, which have a file system with a copy
#              of the folder TREE
#
# and finds /run/src/I, what the server reads of the image I (a file, or a
# volume), /run/at/I, what the client reads, and /run/tree/K, the client's copy.
set -u

# From the beginning of an image's volume to that of the next, and its length:
# 50 GB apart, as data sets are in the paper.
GAP_SECTORS=$((48000 * 2048))
VOLUME_SECTORS=$((38000 * 2048))

give_up() {
	echo "$*" >&2
	exit 1
}

need() {
	command -v "$1" >/dev/null ||
		give_up "$1 is missing: install the Debian package $2"
}

# ---- the images ----

# Each in a file system and a volume of its own, as LVM makes them.
make_volume() { # NUMBER
	echo "0 $VOLUME_SECTORS linear $DEV $(($1 * GAP_SECTORS))" |
		dmsetup create --noudevsync "data$1" && dmsetup mknodes
}

is_raw_volume() {
	[ "${words[-1]}" = iblock ]
}

# A server of disks; others have files.
is_block() {
	case ${words[0]} in
	local | knfsd | samba) return 1 ;;
	esac
}

mount_volume() { # NUMBER
	mkdir -p "/run/fs/$1" &&
		mount -o noinit_itable "/dev/mapper/data$1" "/run/fs/$1"
}

# A file whose blocks the file system takes for written, though nobody wrote
# them: what is read comes from the disk, and takes none of the rig's memory.
make_image() { # NUMBER MB
	local file=/run/fs/$1/image

	! is_raw_volume || return 0
	# A format's own data needs some room.
	cat >/run/mke2fs.conf <<-CONFIGURATION
		[defaults]
		blocksize = 4096
		inode_size = 256
		inode_ratio = 1048576
		[fs_types]
		ext4 = {
			features = has_journal,extent,huge_file,flex_bg,64bit,filetype,sparse_super,large_file,dir_index,ext_attr
		}
		image = {
			make_hugefiles = true
			hugefiles_dir = /
			hugefiles_name = image
			hugefiles_digits = 0
			hugefiles_size = $(($2 + 8))M
			num_hugefiles = 1
			zero_hugefiles = false
		}
	CONFIGURATION
	MKE2FS_CONFIG=/run/mke2fs.conf mkfs.ext4 -q -T image -E nodiscard \
		-J size=16 "/dev/mapper/data$1" && mount_volume "$1" || return
	case " ${words[*]} " in
	*" qcow2 "*) write_qcow2 "$file" "$2" ;;
	esac
}

# What describes an empty image; its data is what the file has.
write_qcow2() { # FILE MB
	need qemu-img qemu-utils
	qemu-img create -q -f qcow2 -o preallocation=metadata /tmp/image "$2M" &&
		dd if=/tmp/image of="$1" bs=64k conv=notrunc,sparse \
			status=none && rm /tmp/image
}

# A source tree for a client: in the server's file system, or in a file system
# of the client's own on its disk.
make_tree() { # NUMBER MB
	local into=/run/fs/$1

	if ! is_block; then
		mkfs.ext4 -q -E nodiscard -J size=16 "/dev/mapper/data$1" &&
			mount_volume "$1" && cp -r "$TREE" "$into/tree"
		return
	fi
	truncate -s "$2M" /tmp/tree && mkfs.ext4 -q -d "$TREE" /tmp/tree || return
	if is_raw_volume; then
		into=/dev/mapper/data$1
	else
		mkfs.ext4 -q -E nodiscard -J size=16 "/dev/mapper/data$1" &&
			mount_volume "$1" || return
		into+=/image
	fi
	case " ${words[*]} " in
	*" qcow2 "*) qemu-img convert -O qcow2 /tmp/tree "$into" ;;
	*) dd if=/tmp/tree of="$into" bs=1M status=none ;;
	esac && rm /tmp/tree
}

find_tree() { # NUMBER NAME
	local client=/run/client/$1

	if is_block; then
		mkdir "/run/tree/$2" && mount "/run/at/$1" "/run/tree/$2"
	else
		[ -d "$client" ] || client=/run/fs/$1
		ln -s "$client/tree" "/run/tree/$2"
	fi
}

# ---- the servers ----

# Programs that keep their state in folders of the machine's root, which is
# read-only here.
writable() { # FOLDER...
	local folder

	for folder; do
		mount -t tmpfs -o mode=755 tmp "$folder" ||
			give_up "no tmpfs on $folder"
	done
}

at() { # NUMBER PATH
	ln -s "$2" "/run/at/$1"
}

# No server: who reads is seen.
serve_local() {
	local i

	for i in "${!SIZES[@]}"; do
		at "$i" "/run/src/$i"
	done
}

serve_knfsd() { # VERSION THREADS
	local i version=$1 root=/run/fs options=rw,no_root_squash,no_subtree_check,insecure

	need rpc.nfsd nfs-kernel-server
	need mount.nfs nfs-common
	need rpcbind rpcbind
	writable /var/lib/nfs
	mkdir -p /var/lib/nfs/v4recovery /var/lib/nfs/sm /run/rpcbind /run/sendsigs.omit.d
	touch /var/lib/nfs/etab /var/lib/nfs/rmtab
	rpcbind || give_up "rpcbind does not start"
	mount -t nfsd nfsd /proc/fs/nfsd || give_up "no nfsd file system"
	# Version 4 counts paths from what is called 0. It must not be the
	# machine's root, which no server can export here.
	exportfs -o "$options,fsid=0" "*:/run/fs" || give_up "no export"
	for i in "${!SIZES[@]}"; do
		exportfs -o "$options,fsid=$((i + 1))" "*:/run/fs/$i" ||
			give_up "/run/fs/$i is not exported"
	done
	rpc.mountd || give_up "rpc.mountd does not start"
	rpc.nfsd "$2" || give_up "knfsd does not start"
	# Clients of version 4 wait for those of before, for 90 s.
	[ "$version" = 3 ] || { sleep 100 && root=; }
	options=vers=$version,proto=tcp
	[ "$version" != 3 ] || options+=,nolock
	for i in "${!SIZES[@]}"; do
		mkdir -p "/run/client/$i"
		mount.nfs "127.0.0.1:$root/$i" "/run/client/$i" -o "$options" ||
			give_up "NFS $version: /run/fs/$i cannot be mounted"
		at "$i" "/run/client/$i/image"
	done
}

serve_samba() { # AIO_READ_SIZE
	local i folder=/run/samba

	need smbd samba
	need mount.cifs cifs-utils
	mkdir -p $folder/private $folder/ncalrpc
	{
		cat <<-CONFIGURATION
			[global]
			map to guest = Bad User
			guest account = root
			server role = standalone server
			bind interfaces only = yes
			interfaces = lo
			smb ports = 4450
			disable netbios = yes
			load printers = no
			private dir = $folder/private
			lock directory = $folder
			state directory = $folder
			cache directory = $folder
			pid directory = $folder
			ncalrpc dir = $folder/ncalrpc
			log file = $folder/log
			aio read size = $1
			aio write size = $1
		CONFIGURATION
		for i in "${!SIZES[@]}"; do
			printf '[%s]\npath = /run/fs/%s\nguest ok = yes\nread only = no\n' \
				"$i" "$i"
		done
	} >$folder/smb.conf
	smbd -D -s $folder/smb.conf || give_up "smbd does not start"
	sleep 1
	for i in "${!SIZES[@]}"; do
		mkdir -p "/run/client/$i"
		mount.cifs "//127.0.0.1/$i" "/run/client/$i" \
			-o port=4450,guest,vers=3.1.1,cache=none ||
			give_up "SMB: $i cannot be mounted: $(tail -n 3 $folder/log)"
		at "$i" "/run/client/$i/image"
	done
}

TARGETS=/sys/kernel/config/target

# A backstore for each image, in the order of their numbers.
make_backstore() { # NUMBER KIND
	local folder=$TARGETS/core/$2_0/$1

	mkdir -p "$folder"
	case $2 in
	fileio)
		echo "fd_dev_name=/run/src/$1,fd_dev_size=$((SIZES[$1] << 20))" \
			>"$folder/control"
		;;
	iblock) echo "udev_path=/run/src/$1" >"$folder/control" ;;
	esac
	echo 1 >"$folder/enable" || give_up "LIO: no backstore for image $1"
	echo "image$1" >"$folder/wwn/vpd_unit_serial"
}

make_luns() { # GROUP KIND
	local i

	for i in "${!SIZES[@]}"; do
		make_backstore "$i" "$2"
		mkdir -p "$1/lun/lun_$i"
		ln -s "$TARGETS/core/$2_0/$i" "$1/lun/lun_$i/storage" ||
			give_up "LIO: no unit for image $i"
	done
}

# SCSI disks are found by the units' numbers.
find_units() {
	local i disk

	for i in "${!SIZES[@]}"; do
		for _ in $(seq 100); do
			disk=$(find /sys/class/scsi_device/*:"$i"/device/block/ \
				-mindepth 1 -maxdepth 1 -name 'sd*' 2>/dev/null)
			[ -z "$disk" ] || break
			sleep 0.1
		done
		[ -n "$disk" ] || give_up "LIO: unit $i does not appear"
		disk=${disk##*/}
		echo none >"/sys/block/$disk/queue/scheduler"
		at "$i" "/dev/$disk"
	done
}

serve_tcm_loop() { # KIND
	local group=$TARGETS/loopback/naa.6001405000000001/tpgt_1

	mkdir -p "$group" || give_up "LIO: no loopback target"
	echo naa.6001405000000002 >"$group/nexus"
	make_luns "$group" "$1"
	find_units
}

serve_iscsi() { # KIND
	local name=iqn.2026-11.local.rig:images group

	need iscsistart open-iscsi
	group=$TARGETS/iscsi/$name/tpgt_1
	mkdir -p "$group" || give_up "LIO: no iSCSI target"
	make_luns "$group" "$1"
	mkdir "$group/np/127.0.0.1:3260" || give_up "LIO: port 3260 is in use"
	echo 0 >"$group/attrib/authentication"
	echo 0 >"$group/attrib/demo_mode_write_protect"
	echo 1 >"$group/attrib/generate_node_acls"
	echo 1 >"$group/enable"
	iscsistart -i iqn.2026-11.local.rig:client -t $name -g 1 -a 127.0.0.1 \
		>/run/iscsistart 2>&1 ||
		give_up "iscsistart: $(tail -n 1 /run/iscsistart)"
	find_units
}

connect_nbd() { # NUMBER SOCKET
	nbd-client -block-size 512 -unix "$2" "/dev/nbd$1" -name "$1" \
		>/run/nbd-client 2>&1 ||
		give_up "nbd-client: $(tail -n 1 /run/nbd-client)"
	echo none >"/sys/block/nbd$1/queue/scheduler"
	at "$1" "/dev/nbd$1"
}

serve_qsd() { # FORMAT AIO
	local i words=() file

	need qemu-storage-daemon qemu-system-common
	need nbd-client nbd-client
	for i in "${!SIZES[@]}"; do
		file=/run/src/$i
		words+=(--blockdev
			"file,node-name=file$i,filename=$file,aio=$2,cache.direct=on"
			--blockdev "$1,node-name=disk$i,file=file$i"
			--export "nbd,id=e$i,node-name=disk$i,name=$i,writable=on")
	done
	qemu-storage-daemon --daemonize --pidfile /run/qsd.pid \
		--nbd-server addr.type=unix,addr.path=/run/qsd "${words[@]}" ||
		give_up "qemu-storage-daemon does not start"
	for i in "${!SIZES[@]}"; do
		connect_nbd "$i" /run/qsd
	done
}

serve_nbd_server() {
	local i

	need nbd-server nbd-server
	need nbd-client nbd-client
	{
		printf '[generic]\nunixsock = /run/nbd-server\nport = 10809\n'
		for i in "${!SIZES[@]}"; do
			printf '[%s]\nexportname = /run/src/%s\n' "$i" "$i"
		done
	} >/run/nbd-server.conf
	nbd-server -C /run/nbd-server.conf || give_up "nbd-server does not start"
	sleep 1
	for i in "${!SIZES[@]}"; do
		connect_nbd "$i" /run/nbd-server
	done
}

serve_nbdkit() {
	local i

	need nbdkit nbdkit
	need nbd-client nbd-client
	nbdkit -U /run/nbdkit file dir=/run/src || give_up "nbdkit does not start"
	sleep 1
	for i in "${!SIZES[@]}"; do
		connect_nbd "$i" /run/nbdkit
	done
}

# ---- a file system on several disks ----

# A brick of each disk for the volume; as far apart as images are.
make_bricks() { # NUMBER
	local disk name folder

	for disk in /sys/block/hdd*; do
		disk=${disk##*/hdd}
		name=brick$1-$disk folder=/run/fs/$1/$disk
		echo "0 $VOLUME_SECTORS linear /dev/hdd$disk $(($1 * GAP_SECTORS))" |
			dmsetup create --noudevsync "$name" && dmsetup mknodes &&
			mkfs.ext4 -q -E nodiscard -J size=16 "/dev/mapper/$name" &&
			mkdir -p "$folder" &&
			mount -o noinit_itable "/dev/mapper/$name" "$folder" &&
			mkdir "$folder/brick" || return
	done
}

# What a brick's process serves, and what a client makes of all of a volume.
brick_graph() { # FOLDER PORT
	printf 'volume %s\n%s\nend-volume\n' \
		files "type storage/posix
option directory $1" \
		locks "type features/locks
subvolumes files" \
		brick "type performance/io-threads
subvolumes locks" \
		server "type protocol/server
option transport-type tcp
option transport.address-family inet
option transport.socket.listen-port $2
option auth.addr.brick.allow *
subvolumes brick"
}

client_graph() { # PORT...
	local port bricks=''

	for port; do
		bricks+=" at$port"
		printf 'volume %s\n%s\nend-volume\n' "at$port" "type protocol/client
option transport-type tcp
option transport.address-family inet
option remote-host 127.0.0.1
option remote-port $port
option remote-subvolume brick"
	done
	printf 'volume %s\n%s\nend-volume\n' \
		spread "type cluster/distribute
subvolumes$bricks" \
		pieces "type features/shard
option shard-block-size 4MB
subvolumes spread"
}

serve_gluster() {
	local i folder port=24100 ports log=/var/log/glusterfs

	need glusterfsd glusterfs-server
	need glusterfs glusterfs-client
	writable /var/lib/glusterd $log
	mkdir -p /run/gluster
	for i in "${!SIZES[@]}"; do
		ports=()
		for folder in "/run/fs/$i/"*; do
			port=$((port + 1))
			ports+=("$port")
			brick_graph "$folder/brick" $port >/run/gluster/$port
			glusterfsd -f /run/gluster/$port -l $log/$port \
				-p /run/gluster/$port.pid ||
				give_up "glusterfsd: $(tail -n 1 $log/$port)"
		done
		sleep 1
		client_graph "${ports[@]}" >"/run/gluster/client$i"
		mkdir -p "/run/client/$i"
		glusterfs -f "/run/gluster/client$i" -l "$log/client$i" \
			"/run/client/$i" ||
			give_up "glusterfs: $(tail -n 1 "$log/client$i")"
		mountpoint -q "/run/client/$i" ||
			give_up "glusterfs: $(tail -n 1 "$log/client$i")"
		dd if=/dev/zero of="/run/client/$i/image" bs=1M \
			count="${SIZES[$i]}" status=none ||
			give_up "GlusterFS: image $i could not be written"
		at "$i" "/run/client/$i/image"
	done
}

# ---- all of it ----

SIZES=()
mkdir -p /run/src /run/at /run/tree
# shellcheck disable=SC2153 # given
read -r -a words <<<"$SERVER"
for size in $IMAGES_MB; do
	SIZES+=("$size")
done
images=${#SIZES[@]}
for size in $TREES_MB; do
	SIZES+=("$size")
done
for number in "${!SIZES[@]}"; do
	if [ "${words[0]}" = gluster ]; then
		make_bricks "$number" || give_up "bricks $number"
		continue
	fi
	make_volume "$number" || give_up "volume $number"
	kind=image
	[ "$number" -lt "$images" ] || kind=tree
	"make_$kind" "$number" "${SIZES[$number]}" || give_up "$kind $number"
	source=/run/fs/$number/image
	! is_raw_volume || source=/dev/mapper/data$number
	ln -s "$source" "/run/src/$number"
done
"serve_${words[0]}" "${words[@]:1}"
for number in "${!SIZES[@]}"; do
	[ "$number" -lt "$images" ] ||
		find_tree "$number" $((number - images)) || give_up "tree $number"
done
sync
echo 3 >/proc/sys/vm/drop_caches
