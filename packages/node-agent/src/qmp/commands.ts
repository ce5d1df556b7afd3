/** The QMP commands and events this project uses, with their types (QEMU QAPI schema, 7.2 and newer). */

export type RunState =
  | 'debug'
  | 'inmigrate'
  | 'internal-error'
  | 'io-error'
  | 'paused'
  | 'postmigrate'
  | 'prelaunch'
  | 'finish-migrate'
  | 'restore-vm'
  | 'running'
  | 'save-vm'
  | 'shutdown'
  | 'suspended'
  | 'watchdog'
  | 'guest-panicked'
  | 'colo';

interface BlockInfo {
  readonly device: string;
  readonly qdev?: string;
  readonly 'io-status'?: 'ok' | 'failed' | 'nospace';
  readonly inserted?: { readonly 'node-name'?: string; readonly ro: boolean };
}

/** What went through one back end since its machine was started. */
export interface BlockStats {
  /** Path of the device, where it has one. */
  readonly qdev?: string;
  readonly stats: {
    readonly rd_bytes: number;
    readonly wr_bytes: number;
    readonly rd_operations: number;
    readonly wr_operations: number;
    readonly flush_operations: number;
    readonly rd_total_time_ns: number;
    readonly wr_total_time_ns: number;
    readonly flush_total_time_ns: number;
  };
}

/** A processor, or the place for one. */
export interface HotpluggableCpu {
  /** Driver for `device_add`. */
  readonly type: string;
  /** Its place, as `device_add` takes it. */
  readonly props: Readonly<Record<string, number>>;
  /** Absent while the place is empty. */
  readonly 'qom-path'?: string;
}

export interface MigrationInfo {
  readonly status?: string;
  readonly 'error-desc'?: string;
  readonly 'total-time'?: number;
  readonly downtime?: number;
  /** ms since the migration began. */
  readonly 'setup-time'?: number;
  readonly ram?: {
    readonly transferred: number;
    readonly remaining: number;
    readonly total: number;
    /** Megabits a second. */
    readonly mbps?: number;
    /** Pages that the guest changes in a second. */
    readonly 'dirty-pages-rate'?: number;
    readonly 'page-size'?: number;
  };
}

type RunCommand = 'qmp_capabilities' | 'stop' | 'cont' | 'quit' | 'system_powerdown' | 'system_reset';
type StreamCommand = 'migrate_cancel' | 'migrate-start-postcopy' | 'nbd-server-stop';
type DeviceCommand = 'device_del' | 'object-del' | 'netdev_del' | 'blockdev-close-tray' | 'blockdev-remove-medium';
type JobCommand = 'job-cancel' | 'job-dismiss';

/** Command name -> arguments and result. `undefined` arguments mean the command takes none. */
export interface QmpCommands
  extends Record<RunCommand | StreamCommand, { args: undefined; result: object }>,
    Record<DeviceCommand | JobCommand, { args: { id: string }; result: object }> {
  'query-status': { args: undefined; result: { status: RunState; running: boolean } };
  'query-uuid': { args: undefined; result: { UUID: string } };
  'query-version': { args: undefined; result: { qemu: { major: number; minor: number; micro: number } } };
  'query-block': { args: undefined; result: BlockInfo[] };
  'query-blockstats': { args: undefined; result: BlockStats[] };
  'query-cpus-fast': { args: undefined; result: { 'cpu-index': number; 'thread-id': number }[] };
  'query-chardev': { args: undefined; result: { label: string; filename: string; 'frontend-open': boolean }[] };
  'query-balloon': { args: undefined; result: { actual: number } };
  'query-migrate': { args: undefined; result: MigrationInfo };
  'query-machines': { args: undefined; result: { name: string; alias?: string }[] };
  'query-cpu-definitions': { args: undefined; result: { name: string }[] };
  'query-cpu-model-expansion': {
    args: { type: 'static' | 'full'; model: { name: string } };
    result: { model: { name: string; props?: Record<string, unknown> } };
  };
  'query-hotpluggable-cpus': { args: undefined; result: HotpluggableCpu[] };
  device_add: { args: { driver: string; id: string } & Readonly<Record<string, unknown>>; result: object };
  'blockdev-open-tray': { args: { id: string; force: boolean }; result: object };
  'blockdev-insert-medium': { args: { id: string; 'node-name': string }; result: object };
  'chardev-add': { args: { id: string; backend: SocketBackend }; result: object };
  'object-add': { args: { 'qom-type': string; id: string } & Readonly<Record<string, unknown>>; result: object };
  'qom-list': { args: { path: string }; result: { name: string; type: string }[] };
  'qom-get': { args: { path: string; property: string }; result: unknown };
  'qom-set': { args: { path: string; property: string; value: unknown }; result: object };
  'query-memory-devices': { args: undefined; result: { type: string; data: { id?: string; size: number } }[] };
  netdev_add: { args: { type: string; id: string } & Readonly<Record<string, unknown>>; result: object };
  set_link: { args: { name: string; up: boolean }; result: object };
  'qom-list-types': { args: { implements?: string; abstract?: boolean }; result: { name: string }[] };
  'dump-guest-memory': { args: { paging: boolean; protocol: string; detach: boolean }; result: object };
  'query-dump': { args: undefined; result: { status: 'none' | 'active' | 'completed' | 'failed' } };
  screendump: { args: { filename: string }; result: object };
  'input-send-event': { args: { events: readonly object[] }; result: object };
  'human-monitor-command': { args: { 'command-line': string }; result: string };
  'migrate-set-capabilities': {
    args: { capabilities: { capability: string; state: boolean }[] };
    result: object;
  };
  'migrate-set-parameters': { args: Record<string, unknown>; result: object };
  'migrate-incoming': { args: { uri: string }; result: object };
  migrate: { args: { uri: string }; result: object };
  'migrate-continue': { args: { state: string }; result: object };
  'nbd-server-start': { args: { addr: UnixAddress; 'max-connections'?: number }; result: object };
  'block-export-add': {
    args: { type: 'nbd'; id: string; 'node-name': string; name: string; writable: boolean };
    result: object;
  };
  'blockdev-add': { args: Readonly<Record<string, unknown>>; result: object };
  'blockdev-del': { args: { 'node-name': string }; result: object };
  transaction: {
    args: { actions: readonly { type: string; data: Readonly<Record<string, unknown>> }[] };
    result: object;
  };
  block_resize: { args: { 'node-name': string; size: number }; result: object };
  'block-commit': {
    args: { 'job-id': string; device: string; 'top-node': string; 'base-node': string; 'auto-dismiss': boolean };
    result: object;
  };
  'block-stream': {
    args: { 'job-id': string; device: string; 'base-node': string; 'auto-dismiss': boolean };
    result: object;
  };
  'query-jobs': { args: undefined; result: { id: string; type: string; status: string; error?: string }[] };
  'blockdev-mirror': {
    args: {
      'job-id': string;
      device: string;
      target: string;
      sync: 'full' | 'top';
      'copy-mode': 'background' | 'write-blocking';
      speed?: number;
    };
    result: object;
  };
  'block-job-cancel': { args: { device: string; force?: boolean }; result: object };
  'query-block-jobs': {
    args: undefined;
    result: { device: string; type: string; status: string; ready: boolean; offset: number; len: number }[];
  };
  'query-named-block-nodes': {
    args: { flat?: boolean };
    result: {
      'node-name'?: string;
      file: string;
      drv: string;
      ro: boolean;
      backing_file?: string;
      image: { 'virtual-size': number };
    }[];
  };
}

/** A unix socket as QEMU names it. */
interface UnixAddress {
  readonly type: 'unix';
  readonly data: { readonly path: string };
}

/** A character device that listens on a unix socket. */
interface SocketBackend {
  readonly type: 'socket';
  readonly data: { readonly addr: UnixAddress; readonly server: boolean; readonly wait: boolean };
}

export type QmpCommand = keyof QmpCommands;

/** An asynchronous event. `seconds` and `microseconds` are the host's wall clock as QEMU read it. */
export interface QmpEvent {
  readonly event: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly timestamp: { readonly seconds: number; readonly microseconds: number };
}
