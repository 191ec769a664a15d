// SPDX-License-Identifier: GPL-2.0-only
/*
 * hdd-emu: disks that take the time a rotating disk would, without one.
 *
 * The model in disk/ says when each command is done; this file brings block
 * requests to it. A request goes into the model when the block layer hands it
 * over, at the kernel's time since the disk was switched on. A timer is set
 * to the next completion. When it comes, the data is copied and the request
 * ends. The block layer has as many tags as the drive takes commands, so the
 * model never refuses one.
 *
 * Commands that are to be late, because of a range in `delays`, stay on a list
 * of their own when they leave the model; the mechanism goes on meanwhile. One
 * that is to time out is kept until the block layer asks after it. One for
 * which the drive is busy goes back to the block layer, once.
 *
 * disk->lock guards the model, the lists and the data. The timer runs in
 * softirq context, as do completions, so it is taken with those off.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#define COMPAT_DISK
#include "compat.h"
#include "hdd-emu.h"

#include <linux/highmem.h>
#include <linux/limits.h>
#include <linux/module.h>
#include <linux/slab.h>

/* What Linux sends to a SATA disk at most, unless told otherwise: 1280 KiB. */
#define MAX_SECTORS 2560
/* So that no size of page makes a request smaller than that. */
#define MAX_SEGMENTS (MAX_SECTORS / (4096 >> SECTOR_SHIFT))
/* Zeroes are written like other data; discards cost a walk over memory. */
#define MAX_ZEROES_SECTORS (64U << (20 - SECTOR_SHIFT))
#define MAX_DISCARD_SECTORS (256U << (20 - SECTOR_SHIFT))

enum hdd_emu_state {
	HDD_EMU_IN_MODEL,
	HDD_EMU_HELD,
	HDD_EMU_HUNG,
	HDD_EMU_DONE,
};

/* The driver's part of a request. */
struct hdd_emu_cmd {
	struct hdd_cmd cmd;
	struct list_head node;
	enum hdd_emu_state state;
	blk_status_t status; /* what it ends with */
	u64 due_ns;
	u64 delay_ns;
	bool cached; /* a write that the drive's cache takes */
	bool prepared; /* a write that has memory in the store */
	bool lost; /* the drive will never answer */
	bool send_back; /* to the block layer, which is to send it again */
};

static struct workqueue_struct *hdd_emu_workqueue;

static u64 hdd_emu_now(const struct hdd_emu *disk)
{
	return ktime_get_ns() - disk->base_ns;
}

/* Data. */

static void hdd_emu_copy(struct hdd_emu *disk, struct request *rq, u64 now_ns)
{
	struct hdd_emu_cmd *cmd = blk_mq_rq_to_pdu(rq);
	bool memory = disk->config.backing == HDD_EMU_MEMORY;
	u64 sector = blk_rq_pos(rq);
	struct req_iterator iter;
	struct bio_vec bvec;

	rq_for_each_segment(bvec, rq, iter) {
		u32 nr = bvec.bv_len >> SECTOR_SHIFT;
		void *data = bvec_kmap_local(&bvec);

		if (op_is_write(req_op(rq))) {
			if (memory)
				hdd_emu_store_write(&disk->store, sector, data,
						    nr, cmd->cached, now_ns);
		} else {
			if (memory)
				hdd_emu_store_read(&disk->store, sector, data,
						   nr);
			else
				memset(data, 0, bvec.bv_len);
			flush_dcache_page(bvec.bv_page);
		}
		kunmap_local(data);
		sector += nr;
	}
}

/* The drive has done it: so does the data. */
static void hdd_emu_carry_out(struct hdd_emu *disk, struct request *rq,
			      u64 now_ns)
{
	switch (req_op(rq)) {
	case REQ_OP_FLUSH:
		hdd_emu_store_sync(&disk->store);
		break;
	case REQ_OP_DISCARD:
	case REQ_OP_WRITE_ZEROES:
		hdd_emu_store_zero(&disk->store, blk_rq_pos(rq),
				   blk_rq_sectors(rq));
		break;
	default:
		hdd_emu_copy(disk, rq, now_ns);
	}
}

/* Completions. */

/* It leaves the drive, for good or bad: onto @done. */
static void hdd_emu_finish(struct hdd_emu *disk, struct hdd_emu_cmd *cmd,
			   u64 now_ns, struct list_head *done)
{
	struct request *rq = blk_mq_rq_from_pdu(cmd);

	if (cmd->status == BLK_STS_OK)
		hdd_emu_carry_out(disk, rq, now_ns);
	if (cmd->prepared)
		hdd_emu_store_done(&disk->store, blk_rq_pos(rq),
				   blk_rq_sectors(rq));
	cmd->state = HDD_EMU_DONE;
	list_move_tail(&cmd->node, done);
}

/* All that is done by @now_ns, onto @done. Brings the model up to then. */
static void hdd_emu_reap(struct hdd_emu *disk, u64 now_ns,
			 struct list_head *done)
{
	struct hdd_emu_cmd *cmd, *next;
	struct hdd_cmd *popped;

	while ((popped = hdd_drive_pop(disk->drive, now_ns)) != NULL) {
		cmd = container_of(popped, struct hdd_emu_cmd, cmd);
		if (cmd->delay_ns) {
			cmd->state = HDD_EMU_HELD;
			cmd->due_ns = popped->done_ns + cmd->delay_ns;
			list_move_tail(&cmd->node, &disk->held);
		} else {
			hdd_emu_finish(disk, cmd, now_ns, done);
		}
	}
	list_for_each_entry_safe(cmd, next, &disk->held, node)
		if (cmd->due_ns <= now_ns)
			hdd_emu_finish(disk, cmd, now_ns, done);
	hdd_emu_store_drain(&disk->store, disk->drive, now_ns);
}

/* Set the timer to what is done next. */
static void hdd_emu_arm(struct hdd_emu *disk)
{
	u64 next_ns = hdd_drive_next_ns(disk->drive);
	struct hdd_emu_cmd *cmd;

	list_for_each_entry(cmd, &disk->held, node)
		next_ns = min(next_ns, cmd->due_ns);
	if (next_ns == disk->armed_ns)
		return;
	disk->armed_ns = next_ns;
	/* With nothing to come it may go off once more, in vain. */
	if (next_ns != U64_MAX)
		hrtimer_start(&disk->timer,
			      ns_to_ktime(disk->base_ns + next_ns),
			      HRTIMER_MODE_ABS_SOFT);
}

/* Hand over to the block layer, without the lock. */
static void hdd_emu_complete_all(struct list_head *done)
{
	struct hdd_emu_cmd *cmd, *next;

	list_for_each_entry_safe(cmd, next, done, node) {
		struct request *rq = blk_mq_rq_from_pdu(cmd);

		if (cmd->send_back)
			blk_mq_requeue_request(rq, true);
		else
			blk_mq_complete_request(rq);
	}
}

static enum hrtimer_restart hdd_emu_timer(struct hrtimer *timer)
{
	struct hdd_emu *disk = container_of(timer, struct hdd_emu, timer);
	LIST_HEAD(done);

	spin_lock_bh(&disk->lock);
	disk->armed_ns = U64_MAX;
	hdd_emu_reap(disk, hdd_emu_now(disk), &done);
	hdd_emu_arm(disk);
	spin_unlock_bh(&disk->lock);
	hdd_emu_complete_all(&done);
	return HRTIMER_NORESTART;
}

static void hdd_emu_complete(struct request *rq)
{
	struct hdd_emu_cmd *cmd = blk_mq_rq_to_pdu(rq);

	blk_mq_end_request(rq, cmd->status);
}

static enum blk_eh_timer_return hdd_emu_timeout(struct request *rq)
{
	struct hdd_emu *disk = rq->q->queuedata;
	struct hdd_emu_cmd *cmd = blk_mq_rq_to_pdu(rq);
	enum hdd_emu_state state;
	LIST_HEAD(done);

	spin_lock_bh(&disk->lock);
	state = cmd->state;
	if (state == HDD_EMU_HUNG) {
		cmd->status = BLK_STS_TIMEOUT;
		hdd_emu_finish(disk, cmd, hdd_emu_now(disk), &done);
	}
	spin_unlock_bh(&disk->lock);
	hdd_emu_complete_all(&done);
	/* The drive is slow, but it has not forgotten the others. */
	return state == HDD_EMU_HUNG || state == HDD_EMU_DONE ?
		       BLK_EH_DONE :
		       BLK_EH_RESET_TIMER;
}

/* Memory. */

static void hdd_emu_refill(struct work_struct *work)
{
	struct hdd_emu *disk = container_of(work, struct hdd_emu, refill);
	struct hdd_emu_store *store = &disk->store;
	u32 missing, nr;
	void *list;

	spin_lock_bh(&disk->lock);
	missing = HDD_EMU_RESERVE -
		  min_t(u32, store->nr_reserve, HDD_EMU_RESERVE);
	spin_unlock_bh(&disk->lock);
	list = hdd_emu_reserve_alloc(missing, &nr);
	spin_lock_bh(&disk->lock);
	hdd_emu_reserve_add(store, list, nr);
	store->exhausted = nr < missing;
	spin_unlock_bh(&disk->lock);
	blk_mq_run_hw_queues(disk->gendisk->queue, true);
}

/* Memory for a write that the drive is about to take. */
static blk_status_t hdd_emu_prepare(struct hdd_emu *disk, struct request *rq)
{
	struct hdd_emu_cmd *cmd = blk_mq_rq_to_pdu(rq);
	struct hdd_emu_store *store = &disk->store;
	int err;

	err = hdd_emu_store_prepare(store, blk_rq_pos(rq), blk_rq_sectors(rq),
				    cmd->cached);
	if (store->nr_reserve < HDD_EMU_RESERVE / 2)
		queue_work(hdd_emu_workqueue, &disk->refill);
	if (!err) {
		cmd->prepared = true;
		return BLK_STS_OK;
	}
	if (err == -ENOSPC) {
		pr_err_ratelimited(
			"%s: a write failed: the data would exceed memory_limit_bytes, %llu\n",
			hdd_emu_name(disk), disk->config.memory_limit_bytes);
		return BLK_STS_NOSPC;
	}
	if (err == -ENOBUFS) {
		pr_err_ratelimited(
			"%s: a write failed: less than %lu MiB of the machine's memory are left\n",
			hdd_emu_name(disk),
			store->margin_pages >> (20 - PAGE_SHIFT));
		return BLK_STS_NOSPC;
	}
	queue_work(hdd_emu_workqueue, &disk->refill);
	if (!store->exhausted)
		return BLK_STS_RESOURCE; /* and again when there is some */
	pr_err_ratelimited(
		"%s: a write failed: the kernel has no memory left for its data\n",
		hdd_emu_name(disk));
	return BLK_STS_IOERR;
}

/* Requests. */

/* A write that the model's cache takes; as in hdd.c. */
static bool hdd_emu_cacheable(const struct hdd_emu *disk,
			      const struct hdd_cmd *cmd)
{
	if (cmd->op != HDD_WRITE || cmd->fua || !disk->write_cache)
		return false;
	return disk->params.kind == HDD_KIND_FLAT ||
	       cmd->nr_sectors <= disk->params.write_cache_sectors;
}

/* Make a command of @rq. */
static blk_status_t hdd_emu_translate(struct hdd_emu *disk, struct request *rq)
{
	struct hdd_emu_cmd *cmd = blk_mq_rq_to_pdu(rq);

	memset(cmd, 0, sizeof(*cmd));
	INIT_LIST_HEAD(&cmd->node);
	cmd->cmd.sector = blk_rq_pos(rq);
	cmd->cmd.nr_sectors = blk_rq_sectors(rq);
	switch (req_op(rq)) {
	case REQ_OP_READ:
		cmd->cmd.op = HDD_READ;
		break;
	case REQ_OP_WRITE:
		cmd->cmd.op = HDD_WRITE;
		cmd->cmd.fua = rq->cmd_flags & REQ_FUA;
		cmd->cached = hdd_emu_cacheable(disk, &cmd->cmd);
		break;
	case REQ_OP_WRITE_ZEROES:
		/* Onto the medium: so are the zeroes in the store. */
		cmd->cmd.op = HDD_WRITE;
		cmd->cmd.fua = true;
		break;
	case REQ_OP_FLUSH:
		cmd->cmd.op = HDD_FLUSH;
		break;
	case REQ_OP_DISCARD:
		break; /* the model is not asked */
	default:
		return BLK_STS_NOTSUPP;
	}
	return BLK_STS_OK;
}

/*
 * Has the drive had @rq before? Its block layer knows: a request has a timeout
 * from when it is first started, and none when it is made. The driver's part
 * could not tell: one that went back may be merged into another, and then what
 * it left there would be found by the next request that has its tag.
 */
static bool hdd_emu_was_started(const struct request *rq)
{
	return rq->timeout != 0;
}

/* What the ranges say of it. */
static void hdd_emu_inject(struct hdd_emu *disk, struct request *rq)
{
	struct hdd_emu_cmd *cmd = blk_mq_rq_to_pdu(rq);
	bool write = op_is_write(req_op(rq));
	const struct hdd_emu_fault *fault;

	if (req_op(rq) == REQ_OP_FLUSH)
		return;
	fault = hdd_emu_faults_find(&disk->delays, blk_rq_pos(rq),
				    blk_rq_sectors(rq), write);
	if (fault)
		cmd->delay_ns = fault->delay_ns;
	fault = hdd_emu_faults_find(&disk->bad_ranges, blk_rq_pos(rq),
				    blk_rq_sectors(rq), write);
	if (!fault || (fault->kind == HDD_EMU_BUSY && hdd_emu_was_started(rq)))
		return;
	cmd->status = BLK_STS_IOERR;
	cmd->lost = fault->kind == HDD_EMU_TIMEOUT;
	cmd->send_back = fault->kind == HDD_EMU_BUSY;
}

/* The drive takes it at @now_ns. */
static void hdd_emu_take(struct hdd_emu *disk, struct request *rq, u64 now_ns)
{
	struct hdd_emu_cmd *cmd = blk_mq_rq_to_pdu(rq);

	hdd_emu_inject(disk, rq);
	if (cmd->lost) {
		cmd->state = HDD_EMU_HUNG;
		list_add_tail(&cmd->node, &disk->hung);
	} else if (cmd->send_back || req_op(rq) == REQ_OP_DISCARD) {
		/* Nothing for the mechanism; a matter of the drive's tables. */
		cmd->state = HDD_EMU_HELD;
		cmd->due_ns = now_ns + disk->params.command_overhead_ns +
			      cmd->delay_ns;
		list_add_tail(&cmd->node, &disk->held);
	} else {
		cmd->state = HDD_EMU_IN_MODEL;
		list_add_tail(&cmd->node, &disk->in_model);
		if (cmd->cached)
			hdd_emu_store_settle(&disk->store, disk->drive,
					     blk_rq_pos(rq), blk_rq_sectors(rq),
					     now_ns);
		hdd_drive_submit(disk->drive, &cmd->cmd, now_ns);
	}
	/* Last: from here on it may time out. */
	blk_mq_start_request(rq);
}

static blk_status_t hdd_emu_queue_rq(struct blk_mq_hw_ctx *hctx,
				     const struct blk_mq_queue_data *bd)
{
	struct hdd_emu *disk = hctx->queue->queuedata;
	struct request *rq = bd->rq;
	blk_status_t status;
	LIST_HEAD(done);
	u64 now_ns;

	status = hdd_emu_translate(disk, rq);
	if (status != BLK_STS_OK)
		return status;
	spin_lock_bh(&disk->lock);
	if (disk->cut)
		status = BLK_STS_IOERR;
	else if (req_op(rq) == REQ_OP_WRITE &&
		 disk->config.backing == HDD_EMU_MEMORY)
		status = hdd_emu_prepare(disk, rq);
	if (status == BLK_STS_OK) {
		now_ns = hdd_emu_now(disk);
		hdd_emu_reap(disk, now_ns, &done);
		hdd_emu_take(disk, rq, now_ns);
		hdd_emu_arm(disk);
	}
	spin_unlock_bh(&disk->lock);
	hdd_emu_complete_all(&done);
	return status;
}

/* Half of the queues are for reads; each half is spread over the processors. */
static void hdd_emu_map_queues(struct blk_mq_tag_set *tags)
{
	u32 reads = tags->nr_hw_queues / 2;

	tags->map[HCTX_TYPE_DEFAULT].nr_queues = tags->nr_hw_queues - reads;
	blk_mq_map_queues(&tags->map[HCTX_TYPE_DEFAULT]);
	if (!reads)
		return;
	tags->map[HCTX_TYPE_READ].nr_queues = reads;
	tags->map[HCTX_TYPE_READ].queue_offset = tags->nr_hw_queues - reads;
	blk_mq_map_queues(&tags->map[HCTX_TYPE_READ]);
}

static const struct blk_mq_ops hdd_emu_mq_ops = {
	.queue_rq = hdd_emu_queue_rq,
	.map_queues = hdd_emu_map_queues,
	.complete = hdd_emu_complete,
	.timeout = hdd_emu_timeout,
};

/* The supply. */

/* Every command on @list fails. */
static u32 hdd_emu_fail_all(struct hdd_emu *disk, struct list_head *list,
			    u64 now_ns, struct list_head *done)
{
	struct hdd_emu_cmd *cmd, *next;
	u32 nr = 0;

	list_for_each_entry_safe(cmd, next, list, node) {
		cmd->status = BLK_STS_IOERR;
		cmd->send_back = false;
		hdd_emu_finish(disk, cmd, now_ns, done);
		nr++;
	}
	return nr;
}

void hdd_emu_power_cut(struct hdd_emu *disk)
{
	const char *why;
	LIST_HEAD(done);
	u64 now_ns, lost;
	u32 failed;

	spin_lock_bh(&disk->lock);
	if (disk->cut) {
		spin_unlock_bh(&disk->lock);
		return;
	}
	now_ns = hdd_emu_now(disk);
	hdd_emu_reap(disk, now_ns, &done);
	lost = hdd_emu_store_volatile(&disk->store, disk->drive, now_ns);
	hdd_emu_store_cut(&disk->store, disk->drive, now_ns);
	failed = hdd_emu_fail_all(disk, &disk->in_model, now_ns, &done);
	failed += hdd_emu_fail_all(disk, &disk->held, now_ns, &done);
	failed += hdd_emu_fail_all(disk, &disk->hung, now_ns, &done);
	disk->cut = true;
	/* As it was when switched on; the parameters were right then. */
	WARN_ON(hdd_drive_init(disk->drive, &disk->params, &why));
	hdd_emu_arm(disk);
	spin_unlock_bh(&disk->lock);
	hdd_emu_complete_all(&done);
	pr_info("%s: the power fails: %llu sectors lost that the write cache held, %u commands broken off\n",
		hdd_emu_name(disk), lost, failed);
}

void hdd_emu_power_back(struct hdd_emu *disk)
{
	spin_lock_bh(&disk->lock);
	disk->cut = false;
	spin_unlock_bh(&disk->lock);
}

u64 hdd_emu_volatile_sectors(struct hdd_emu *disk)
{
	LIST_HEAD(done);
	u64 now_ns, nr;

	spin_lock_bh(&disk->lock);
	now_ns = hdd_emu_now(disk);
	hdd_emu_reap(disk, now_ns, &done);
	hdd_emu_arm(disk);
	nr = hdd_emu_store_volatile(&disk->store, disk->drive, now_ns);
	spin_unlock_bh(&disk->lock);
	hdd_emu_complete_all(&done);
	return nr;
}

/* On and off. */

static int hdd_emu_open(struct gendisk *gendisk, blk_mode_t mode)
{
	struct hdd_emu *disk = gendisk->private_data;

	return disk->going ? -ENXIO : 0;
}

COMPAT_WRAP_OPEN(hdd_emu_open)

static const struct block_device_operations hdd_emu_fops = {
	.owner = THIS_MODULE,
	.open = COMPAT_OPEN(hdd_emu_open),
};

static u64 hdd_emu_size(const struct hdd_emu *disk)
{
	return disk->config.size_sectors ?: disk->params.capacity_sectors;
}

/* What hdd_drive_init() does not look at. */
static int hdd_emu_check(const struct hdd_emu *disk, const char **why)
{
	const struct hdd_emu_config *config = &disk->config;
	u64 size = hdd_emu_size(disk);
	char path[sizeof("/dev/") + DISK_NAME_LEN];
	dev_t dev;
	int err;

	*why = "size_sectors is more than capacity_sectors";
	if (size > disk->params.capacity_sectors)
		return -EINVAL;
	*why = "the size is not a multiple of logical_block_size";
	if (size & ((config->logical_block_size >> SECTOR_SHIFT) - 1))
		return -EINVAL;
	*why = "logical_block_size is larger than physical_block_size";
	if (config->logical_block_size > config->physical_block_size)
		return -EINVAL;
	*why = "a machine of 32 bits cannot address so many blocks";
	if ((size - 1) / HDD_EMU_BLOCK_SECTORS > ULONG_MAX)
		return -EINVAL;
	/*
	 * The block layer would find a block device, too, with a trace of the
	 * stack; but not /dev/null, or a file that a mistaken dd has left: the
	 * disk would be there, and /dev/NAME would be something else.
	 */
	snprintf(path, sizeof(path), "/dev/%s", hdd_emu_name(disk));
	err = lookup_bdev(path, &dev);
	*why = "there is a block device of this name already";
	if (!err)
		return -EEXIST;
	*why = "there is a file of this name in /dev that is no block device";
	if (err == -ENOTBLK)
		return -EEXIST;
	*why = NULL;
	return 0;
}

/* Tell the kernel of the actuators' ranges; without memory it is not told. */
static void hdd_emu_tell_ranges(struct hdd_emu *disk)
{
	u64 size = hdd_emu_size(disk), half = disk->params.capacity_sectors / 2;
	struct blk_independent_access_ranges *ranges;

	if (disk->params.kind != HDD_KIND_MECHANICAL ||
	    disk->params.actuators < 2 || size <= half)
		return;
	ranges = disk_alloc_independent_access_ranges(disk->gendisk, 2);
	if (!ranges)
		return;
	ranges->ia_range[0].nr_sectors = half;
	ranges->ia_range[1].sector = half;
	ranges->ia_range[1].nr_sectors = size - half;
	disk_set_independent_access_ranges(disk->gendisk, ranges);
}

static int hdd_emu_add_disk(struct hdd_emu *disk, const char **why)
{
	const struct hdd_emu_config *config = &disk->config;
	struct compat_limits limits = {
		.logical_block_size = config->logical_block_size,
		.physical_block_size = config->physical_block_size,
		.max_hw_sectors = MAX_SECTORS,
		.max_segments = MAX_SEGMENTS,
		.max_discard_sectors = config->discard ? MAX_DISCARD_SECTORS :
							 0,
		.discard_granularity = config->discard ? HDD_EMU_BLOCK_BYTES :
							 0,
		.max_write_zeroes_sectors = MAX_ZEROES_SECTORS,
		.write_cache = disk->write_cache,
		.rotational = disk->params.kind == HDD_KIND_MECHANICAL,
	};
	struct gendisk *gendisk;
	int err;

	gendisk = compat_alloc_disk(&disk->tags, &limits, disk);
	*why = "the block layer could not make a disk";
	if (IS_ERR(gendisk))
		return PTR_ERR(gendisk);
	gendisk->fops = &hdd_emu_fops;
	gendisk->private_data = disk;
	strscpy(gendisk->disk_name, hdd_emu_name(disk), DISK_NAME_LEN);
	set_capacity(gendisk, hdd_emu_size(disk));
	disk->gendisk = gendisk;
	hdd_emu_tell_ranges(disk);
	disk->base_ns = ktime_get_ns();
	err = add_disk(gendisk);
	if (!err)
		return 0;
	*why = "the block layer did not take the disk";
	cancel_work_sync(&disk->refill);
	hrtimer_cancel(&disk->timer);
	disk->gendisk = NULL;
	put_disk(gendisk);
	return err;
}

int hdd_emu_power_on(struct hdd_emu *disk, const char **why)
{
	void *list;
	u32 nr;
	int err;

	*why = "there is no memory";
	disk->drive = kvzalloc(hdd_drive_bytes(&disk->params), GFP_KERNEL);
	if (!disk->drive)
		return -ENOMEM;
	err = hdd_drive_init(disk->drive, &disk->params, why);
	if (!err)
		err = hdd_emu_check(disk, why);
	if (err)
		goto free_drive;
	disk->going = false;
	disk->cut = false;
	disk->armed_ns = U64_MAX;
	disk->write_cache = disk->params.kind == HDD_KIND_FLAT ?
				    disk->params.flush_ns != 0 :
				    disk->params.write_cache_sectors &&
					    !disk->params.write_cache_durable;
	disk->store.max_blocks = disk->config.memory_limit_bytes >>
				 HDD_EMU_BLOCK_SHIFT;
	*why = "there is no memory";
	list = hdd_emu_reserve_alloc(HDD_EMU_RESERVE, &nr);
	hdd_emu_reserve_add(&disk->store, list, nr);
	err = -ENOMEM;
	if (nr < HDD_EMU_RESERVE)
		goto free_reserve;
	memset(&disk->tags, 0, sizeof(disk->tags));
	disk->tags.ops = &hdd_emu_mq_ops;
	disk->tags.nr_hw_queues = disk->config.hardware_queues;
	disk->tags.nr_maps = disk->config.hardware_queues > 1 ?
				     HCTX_TYPE_READ + 1 :
				     1;
	disk->tags.queue_depth = disk->params.queue_depth;
	disk->tags.numa_node = NUMA_NO_NODE;
	disk->tags.cmd_size = sizeof(struct hdd_emu_cmd);
	disk->tags.flags = COMPAT_MQ_F_SHOULD_MERGE;
	/* The drive takes no more commands for having several queues. */
	if (disk->tags.nr_maps > 1)
		disk->tags.flags |= BLK_MQ_F_TAG_HCTX_SHARED;
	disk->tags.driver_data = disk;
	err = blk_mq_alloc_tag_set(&disk->tags);
	if (err)
		goto free_reserve;
	err = hdd_emu_add_disk(disk, why);
	if (!err)
		return 0;
	blk_mq_free_tag_set(&disk->tags);
free_reserve:
	hdd_emu_reserve_free(&disk->store);
free_drive:
	kvfree(disk->drive);
	disk->drive = NULL;
	return err;
}

int hdd_emu_power_off(struct hdd_emu *disk, bool unplug, const char **why)
{
	struct gendisk *gendisk = disk->gendisk;

	mutex_lock(&gendisk->open_mutex);
	*why = "it is open";
	if (!unplug && disk_openers(gendisk)) {
		mutex_unlock(&gendisk->open_mutex);
		return -EBUSY;
	}
	disk->going = true;
	mutex_unlock(&gendisk->open_mutex);

	if (unplug) {
		hdd_emu_power_cut(disk);
		blk_mark_disk_dead(gendisk);
	}
	del_gendisk(gendisk);
	cancel_work_sync(&disk->refill);
	hrtimer_cancel(&disk->timer);
	put_disk(gendisk);
	blk_mq_free_tag_set(&disk->tags);
	disk->gendisk = NULL;
	/* A drive writes out its cache before it stops. */
	spin_lock_bh(&disk->lock);
	hdd_emu_store_sync(&disk->store);
	spin_unlock_bh(&disk->lock);
	hdd_emu_reserve_free(&disk->store);
	kvfree(disk->drive);
	disk->drive = NULL;
	return 0;
}

void hdd_emu_disk_init(struct hdd_emu *disk)
{
	mutex_init(&disk->mutex);
	spin_lock_init(&disk->lock);
	INIT_WORK(&disk->refill, hdd_emu_refill);
	INIT_LIST_HEAD(&disk->in_model);
	INIT_LIST_HEAD(&disk->held);
	INIT_LIST_HEAD(&disk->hung);
	hdd_emu_store_init(&disk->store);
	hrtimer_setup(&disk->timer, hdd_emu_timer, CLOCK_MONOTONIC,
		      HRTIMER_MODE_ABS_SOFT);
}

static int __init hdd_emu_init(void)
{
	int err;

	hdd_emu_workqueue = alloc_workqueue("hdd-emu",
					    WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	if (!hdd_emu_workqueue)
		return -ENOMEM;
	err = hdd_emu_config_register();
	if (err)
		destroy_workqueue(hdd_emu_workqueue);
	return err;
}

static void __exit hdd_emu_exit(void)
{
	hdd_emu_config_unregister();
	destroy_workqueue(hdd_emu_workqueue);
}

module_init(hdd_emu_init);
module_exit(hdd_emu_exit);

MODULE_DESCRIPTION("Emulated rotating disks");
MODULE_LICENSE("GPL");
