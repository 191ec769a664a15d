#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Inside the rig, after programs.sh: three PostgreSQL servers with TPC-H's tables of
# query 19. PostgreSQL refuses to run as root; in the rig everybody is.
#
#   BIN      the folder of PostgreSQL's programs
#   TEXT     to load: the folder of the tables as CSV
#   DATA     to work: what load_tpc_h has left, packed
#   REVENUE  and the answer that it had

as_postgres() {
	setpriv --reuid=postgres --regid=postgres --clear-groups "$@"
}

postgres_home() {
	install -d -o postgres -m 700 /run/postgres && cd /run/postgres || exit 1
}

start_postgres() { # FOLDER PORT SETTING...
	local folder=$1 port=$2 setting words="-k /run/postgres -h ''"

	shift 2
	for setting in "port=$port" autovacuum=off jit=off "$@"; do
		words+=" -c $setting"
	done
	as_postgres "$BIN/pg_ctl" -D "$folder" -l "/run/postgres/log$port" \
		-o "$words" -w start >/dev/null || {
		cat "/run/postgres/log$port" >&2
		exit 1
	}
}

tables() {
	cat <<-'EOF'
		BEGIN;
		CREATE TABLE part (
			p_partkey integer NOT NULL, p_name varchar(55) NOT NULL,
			p_mfgr char(25) NOT NULL, p_brand char(10) NOT NULL,
			p_type varchar(25) NOT NULL, p_size integer NOT NULL,
			p_container char(10) NOT NULL,
			p_retailprice numeric(15, 2) NOT NULL,
			p_comment varchar(23) NOT NULL);
		CREATE TABLE lineitem (
			l_orderkey bigint NOT NULL, l_partkey integer NOT NULL,
			l_suppkey integer NOT NULL, l_linenumber integer NOT NULL,
			l_quantity numeric(15, 2) NOT NULL,
			l_extendedprice numeric(15, 2) NOT NULL,
			l_discount numeric(15, 2) NOT NULL,
			l_tax numeric(15, 2) NOT NULL, l_returnflag char(1) NOT NULL,
			l_linestatus char(1) NOT NULL, l_shipdate date NOT NULL,
			l_commitdate date NOT NULL, l_receiptdate date NOT NULL,
			l_shipinstruct char(25) NOT NULL,
			l_shipmode char(10) NOT NULL, l_comment varchar(44) NOT NULL);
		\copy part FROM 'part.csv' (FORMAT csv, HEADER, FREEZE)
		\copy lineitem FROM 'lineitem.csv' (FORMAT csv, HEADER, FREEZE)
		COMMIT;
		ALTER TABLE part ADD PRIMARY KEY (p_partkey);
		VACUUM (FREEZE, ANALYZE);
		CHECKPOINT;
	EOF
}

branch() { # BRAND SIZE CONTAINERS QUANTITY LARGEST
	cat <<-EOF
		(p_partkey = l_partkey AND p_brand = 'Brand#$1'
		AND p_container IN ('$2 ${3// /\', \'$2 }')
		AND l_quantity BETWEEN $4 AND $(($4 + 10))
		AND p_size BETWEEN 1 AND $5
		AND l_shipmode IN ('AIR', 'AIR REG')
		AND l_shipinstruct = 'DELIVER IN PERSON')
	EOF
}

# TPC-H's "discounted revenue query", with the values of its specification's
# example (2.4.19).
query_19() {
	echo "SELECT sum(l_extendedprice * (1 - l_discount)) AS revenue"
	echo "FROM lineitem, part WHERE"
	branch 12 SM "CASE BOX PACK PKG" 1 5
	echo OR
	branch 23 MED "BAG BOX PKG PACK" 10 10
	echo OR
	branch 34 LG "CASE BOX PACK PKG" 20 15
	echo ";"
}

load_tpc_h() {
	postgres_home
	tables >/run/postgres/tables.sql
	query_19 >/run/postgres/query.sql
	install -d -o postgres -m 700 /tmp/data || exit 1
	as_postgres "$BIN/initdb" -D /tmp/data -A trust -U postgres --locale=C \
		-E UTF8 --no-sync >/dev/null || exit 1
	start_postgres /tmp/data 5431 fsync=off wal_level=minimal \
		max_wal_senders=0 max_wal_size=4GB
	cd "$TEXT" || exit 1
	psql -X -q -h /run/postgres -p 5431 -U postgres -v ON_ERROR_STOP=1 \
		-f /run/postgres/tables.sql || exit 1
	psql -X -At -h /run/postgres -p 5431 -U postgres \
		-f /run/postgres/query.sql >"$OUT/revenue" || exit 1
	as_postgres "$BIN/pg_ctl" -D /tmp/data -w -m fast stop >/dev/null || exit 1
	tar -C /tmp/data -cf "$OUT/data.tar" .
}

prepare_tpc_h() {
	local i

	make_volumes 3
	install -d -o postgres -m 700 /run/fs/1/db &&
		tar -C /run/fs/1/db -xzf "$DATA" || exit 1
	chown -R postgres: /run/fs/1/db
	for i in 2 3; do
		cp -a /run/fs/1/db "/run/fs/$i/" || exit 1
	done
	forget_volumes
	postgres_home
	for i in 1 2 3; do
		start_postgres "/run/fs/$i/db" "543$i" shared_buffers=32MB \
			max_parallel_workers_per_gather=0
	done
	echo "$REVENUE" >/run/postgres/revenue
	query_19 >/run/postgres/query.sql
	forget_pages
}

work_tpc_h() {
	local i

	begin
	for i in 1 2 3; do
		psql -X -At -h /run/postgres -p "543$i" -U postgres \
			-f /run/postgres/query.sql >"/run/postgres/revenue$i" &
	done
	wait
	end
	for i in 1 2 3; do
		cmp "/run/postgres/revenue$i" /run/postgres/revenue >&2 || exit 1
	done
}
