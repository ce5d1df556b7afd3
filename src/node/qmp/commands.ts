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

export interface BlockInfo {
  readonly device: string;
  readonly qdev?: string;
  readonly 'io-status'?: 'ok' | 'failed' | 'nospace';
  readonly inserted?: { readonly 'node-name'?: string; readonly ro: boolean };
}

export interface MigrationInfo {
  readonly status?: string;
  readonly 'error-desc'?: string;
  readonly 'total-time'?: number;
  readonly downtime?: number;
  readonly ram?: {
    readonly transferred: number;
    readonly remaining: number;
    readonly total: number;
    readonly mbps?: number;
  };
}

/** Command name -> arguments and result. `undefined` arguments mean the command takes none. */
export interface QmpCommands {
  qmp_capabilities: { args: undefined; result: object };
  'query-status': { args: undefined; result: { status: RunState; running: boolean } };
  'query-uuid': { args: undefined; result: { UUID: string } };
  'query-version': { args: undefined; result: { qemu: { major: number; minor: number; micro: number } } };
  'query-block': { args: undefined; result: BlockInfo[] };
  'query-chardev': { args: undefined; result: { label: string; filename: string; 'frontend-open': boolean }[] };
  'query-balloon': { args: undefined; result: { actual: number } };
  'query-migrate': { args: undefined; result: MigrationInfo };
  'query-machines': {
    args: undefined;
    result: { name: string; alias?: string; deprecated?: boolean; 'is-default'?: boolean }[];
  };
  'query-cpu-definitions': { args: undefined; result: { name: string; deprecated?: boolean }[] };
  'query-cpu-model-expansion': {
    args: { type: 'static' | 'full'; model: { name: string } };
    result: { model: { name: string; props?: Record<string, unknown> } };
  };
  set_link: { args: { name: string; up: boolean }; result: object };
  'query-kvm': { args: undefined; result: { enabled: boolean; present: boolean } };
  'qom-list-types': { args: { implements?: string; abstract?: boolean }; result: { name: string }[] };
  stop: { args: undefined; result: object };
  cont: { args: undefined; result: object };
  quit: { args: undefined; result: object };
  system_powerdown: { args: undefined; result: object };
  system_reset: { args: undefined; result: object };
  'human-monitor-command': { args: { 'command-line': string }; result: string };
  'migrate-set-capabilities': {
    args: { capabilities: { capability: string; state: boolean }[] };
    result: object;
  };
  'migrate-set-parameters': { args: Record<string, unknown>; result: object };
  'migrate-incoming': { args: { uri: string }; result: object };
  migrate: { args: { uri: string; blk?: boolean; inc?: boolean }; result: object };
  migrate_cancel: { args: undefined; result: object };
  'migrate-continue': { args: { state: string }; result: object };
}

export type QmpCommand = keyof QmpCommands;

/** An asynchronous event. `seconds` and `microseconds` are the host's wall clock as QEMU read it. */
export interface QmpEvent {
  readonly event: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly timestamp: { readonly seconds: number; readonly microseconds: number };
}
