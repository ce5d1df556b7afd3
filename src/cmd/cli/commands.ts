/** The commands of the `coracle` program. Each one's code is loaded only when it runs. */
import type { Command, FlagSpec } from './command.ts';

const DATA_DIR: FlagSpec = {
  type: 'string',
  value: 'DIR',
  summary: 'where state is kept (default: XDG data directory, coracle)',
};
const JSON_OUT: FlagSpec = { type: 'boolean', summary: 'print JSON' };
const KUBECONFIG: FlagSpec = {
  type: 'string',
  value: 'FILE',
  summary: 'cluster to work against (default: $KUBECONFIG, ~/.kube/config)',
};
const NAMESPACE: FlagSpec = { type: 'string', value: 'NAME', summary: 'namespace (default: default)' };
const HOST_DISK: FlagSpec = {
  type: 'string',
  value: 'DIR',
  multiple: true,
  summary: 'directory below which hostDisk volumes may lie; may be given again (needs the HostDisk feature gate)',
};
const CONTROLLERS: FlagSpec = {
  type: 'string',
  value: 'LIST',
  summary: "controllers to run: '*' = all, 'name' = this one, '-name' = not this one, '' = none (default: *)",
  mayBeEmpty: true,
};

export const COMMANDS: readonly Command[] = [
  {
    name: 'up',
    summary: 'Start the control plane and its nodes',
    flags: {
      'data-dir': DATA_DIR,
      port: { type: 'string', value: 'N', summary: 'API port; 0 picks a free one (default: 16443)' },
      nodes: { type: 'string', value: 'N', summary: 'node agents to run in this process (default: 1)' },
      controllers: CONTROLLERS,
      'host-disk': HOST_DISK,
      detach: { type: 'boolean', summary: 'return as soon as the API is ready' },
      'no-merge-kubeconfig': { type: 'boolean', summary: "leave the user's kubeconfig alone" },
      json: JSON_OUT,
    },
    load: async () => (await import('./up.ts')).up,
  },
  {
    name: 'down',
    summary: 'Stop the control plane, and the VMs with it',
    flags: {
      'data-dir': DATA_DIR,
      'keep-vms': { type: 'boolean', summary: 'leave guests running; the next up adopts them' },
      json: JSON_OUT,
    },
    load: async () => (await import('./down.ts')).down,
  },
  {
    name: 'status',
    summary: 'Show what runs',
    flags: { 'data-dir': DATA_DIR, json: JSON_OUT },
    load: async () => (await import('./status.ts')).status,
  },
  {
    name: 'doctor',
    summary: 'Check this host: acceleration, QEMU, disk, ports, git',
    flags: { 'data-dir': DATA_DIR, json: JSON_OUT },
    load: async () => (await import('./doctor.ts')).doctor,
  },
  {
    name: 'kubeconfig',
    summary: "Print the path of the admin's kubeconfig",
    flags: { 'data-dir': DATA_DIR },
    load: async () => (await import('./kubeconfig.ts')).kubeconfig,
  },
  {
    name: 'console',
    summary: 'Attach to the serial console of a VM; Ctrl-] leaves',
    words: 'NAME',
    flags: { namespace: NAMESPACE, kubeconfig: KUBECONFIG, 'data-dir': DATA_DIR },
    load: async () => (await import('./console.ts')).console_,
  },
  {
    name: 'image',
    summary: 'Local images: import NAME FILE, list, rm NAME',
    words: 'import NAME FILE | list | rm NAME',
    choices: ['import', 'list', 'rm'],
    flags: {
      'data-dir': DATA_DIR,
      kernel: { type: 'string', value: 'FILE', summary: 'kernel to put into the imported image at /boot/vmlinuz' },
      initrd: { type: 'string', value: 'FILE', summary: 'initrd to put into the imported image at /boot/initrd' },
      json: JSON_OUT,
    },
    load: async () => (await import('./image.ts')).image,
  },
  {
    name: 'controllers',
    summary: 'Run the controllers alone, against any cluster',
    flags: { kubeconfig: KUBECONFIG, 'data-dir': DATA_DIR, controllers: CONTROLLERS },
    load: async () => (await import('./controllers.ts')).controllers,
  },
  {
    name: 'node',
    summary: 'Run a node agent alone, against any cluster',
    flags: {
      kubeconfig: KUBECONFIG,
      'data-dir': DATA_DIR,
      name: { type: 'string', value: 'NAME', summary: 'node name (default: the host name)' },
      port: { type: 'string', value: 'N', summary: 'port of the node API; 0 picks a free one (default: 0)' },
      address: {
        type: 'string',
        value: 'IP',
        summary: 'address of this host that the node API is served on and the Node names (default: 127.0.0.1)',
      },
      'host-disk': HOST_DISK,
    },
    load: async () => (await import('./node.ts')).node,
  },
  {
    name: 'version',
    summary: 'Print the version',
    flags: { json: JSON_OUT },
    load: async () => (await import('./version.ts')).version,
  },
  {
    name: 'completion',
    summary: 'Print a completion script: bash, zsh or fish',
    words: 'SHELL',
    choices: ['bash', 'zsh', 'fish'],
    flags: {},
    load: async () => (await import('./completion.ts')).completion,
  },
];
