/** The commands of the `coracle` program. Each one's code is loaded only when it runs. */
import {
  ALL_NAMESPACES,
  CLUSTER,
  DATA_DIR,
  EXPLAIN,
  JSON_OUT,
  KUBECONFIG,
  NAMESPACE,
  OUTPUT,
  SERVER,
} from './cluster-flags.ts';
import { type Command, commandGroup, NAME_KINDS, switchFlag, valueFlag } from './command.ts';
import { EXAMPLES } from './examples.ts';
import { MACHINE_COMMANDS } from './machines/machine-commands.ts';
import { NOMOS_COMMANDS } from './nomos/nomos-commands.ts';
import { SYNC_COMMANDS } from './sync/sync-commands.ts';
import { CLUSTER_NAME, CONTROLLERS, GUEST_FLAGS, UP_FLAGS } from './up-flags.ts';

const MANIFEST = valueFlag('FILE', 'YAML or JSON documents; - is standard input', { short: 'f' });

const inGroup = (group: string, rows: Readonly<Record<string, Omit<Command, 'name'>>>): Command[] =>
  Object.entries(rows).map(([name, row]) => ({ name, group, ...row }));

const ROWS: readonly Command[] = [
  ...MACHINE_COMMANDS,
  ...inGroup('Control plane', {
    up: {
      summary: 'Start the control plane and its nodes',
      flags: UP_FLAGS,
      load: async () => (await import('./up.ts')).up,
    },
    down: {
      summary: 'Stop the control plane, and the VMs with it',
      flags: {
        'data-dir': DATA_DIR,
        'keep-vms': switchFlag('leave guests running; the next up adopts them'),
        force: switchFlag('end guests at once, without their grace periods'),
        timeout: valueFlag('SECONDS', 'how long to wait for it to stop (default: 120)'),
        json: JSON_OUT,
      },
      load: async () => (await import('./down.ts')).down,
    },
    status: {
      summary:
        'Show what runs: nodes, machines with state and address, images, disk space, guests without a control plane',
      flags: { 'data-dir': DATA_DIR, json: JSON_OUT },
      load: async () => (await import('./status.ts')).status,
    },
    doctor: {
      summary: 'Check this host: acceleration, QEMU, firmware, kubectl, disk, ports; and the UUIDs of its VMs',
      flags: { 'data-dir': DATA_DIR, json: JSON_OUT },
      load: async () => (await import('./doctor.ts')).doctor,
    },
    kubeconfig: {
      summary: "Print the path of the admin's kubeconfig",
      flags: { 'data-dir': DATA_DIR },
      load: async () => (await import('./kubeconfig.ts')).kubeconfig,
    },
  }),
  ...inGroup('Machines', {
    console: {
      completes: 'machines',
      summary: 'Attach to the serial console of a VM; Ctrl-] leaves',
      words: '[vm/|vmi/]NAME[.NAMESPACE]',
      flags: {
        backlog: switchFlag('first print the last output of the guest'),
        explain: EXPLAIN,
        ...CLUSTER,
      },
      load: async () => (await import('./console.ts')).console_,
    },
    delete: {
      completes: 'machines',
      summary: 'Delete VMs or a namespace, or show what that would mean (--what-if)',
      words: '[vm] NAME[.NAMESPACE]... | namespace NAME',
      choices: ['vm', 'namespace'],
      flags: {
        'what-if': switchFlag(
          'change nothing; show what would be deleted with it, what blocks the deletion, and who may lift that',
        ),
        explain: EXPLAIN,
        wait: valueFlag('BOOL', 'wait until it is gone (default: true)'),
        timeout: valueFlag('SECONDS', 'how long to wait (default: 3600)'),
        output: OUTPUT,
        ...CLUSTER,
        json: JSON_OUT,
      },
      load: async () => (await import('./delete.ts')).delete_,
    },
    fork: {
      completes: 'machines',
      summary: 'Make copies of a running VM that continue from this moment, memory included',
      words: '[vm/]NAME[.NAMESPACE]',
      flags: {
        count: valueFlag('N', 'how many (default: 1)'),
        name: valueFlag(
          'PREFIX',
          'name of the new VM; with more than one PREFIX-1, PREFIX-2, ... (default: NAME-fork-1, ...)',
        ),
        explain: EXPLAIN,
        ...CLUSTER,
        json: JSON_OUT,
      },
      load: async () => (await import('./fork.ts')).fork,
    },
  }),
  ...inGroup('More commands', {
    image: {
      completes: 'images',
      summary: 'Local images: import NAME FILE, list, rm NAME',
      words: 'import NAME FILE | list | rm NAME',
      choices: ['import', 'list', 'rm'],
      flags: {
        'data-dir': DATA_DIR,
        kernel: valueFlag('FILE', 'kernel to put into the imported image at /boot/vmlinuz'),
        initrd: valueFlag('FILE', 'initrd to put into the imported image at /boot/initrd'),
        json: JSON_OUT,
      },
      load: async () => (await import('./image.ts')).image,
    },
    backup: {
      summary: 'Backups of state, volumes and keys: create DIR, verify DIR, restore DIR',
      words: 'create DIR | verify DIR | restore DIR',
      choices: ['create', 'verify', 'restore'],
      flags: {
        'data-dir': {
          ...DATA_DIR,
          summary: 'what is backed up, or where a backup is restored to (default: as for up)',
        },
        base: valueFlag('DIR', 'create: an earlier backup; only what changed since is copied'),
        'without-keys': switchFlag(
          'create: leave out the CA and the token key; kubeconfigs and tokens are then invalid after a restore',
        ),
        json: JSON_OUT,
      },
      load: async () => (await import('./backup.ts')).backup,
    },
    expand: {
      summary: 'Show what a VM becomes with its instance type and preference, and who set each field',
      flags: {
        file: MANIFEST,
        'from-cluster': switchFlag(
          "look instance types and settings up in the cluster (default: the common ones and the file's own)",
        ),
        namespace: { ...NAMESPACE, summary: "namespace (default: the VM's own, else default)" },
        ...SERVER,
        json: JSON_OUT,
      },
      load: async () => (await import('./expand.ts')).expand,
    },
    convert: {
      summary: 'Turn deprecated kinds into their successors: preset -f FILE',
      words: 'preset',
      choices: ['preset'],
      flags: { file: MANIFEST, json: JSON_OUT },
      load: async () => (await import('./convert.ts')).convert,
    },
    controllers: {
      summary: 'Run only the controllers, against any cluster',
      flags: {
        ...SERVER,
        controllers: CONTROLLERS,
        'cluster-name': CLUSTER_NAME,
        'webhook-address': valueFlag(
          'IP',
          'address of this host at which the API server calls the deletion webhook (default: none)',
        ),
        'webhook-port': valueFlag('N', 'port of the webhook; 0 picks a free one (default: 0)'),
      },
      load: async () => (await import('./controllers.ts')).controllers,
    },
    node: {
      summary: 'Run only a node agent, against any cluster; join: with a token from coracle token create',
      words: '[join]',
      choices: ['join'],
      flags: {
        kubeconfig: KUBECONFIG,
        server: valueFlag('URL', 'join: address of the API server (for other machines: coracle up --bind-address IP)'),
        token: valueFlag('T', 'join: bootstrap token (others on this host can see it in ps)'),
        'token-file': valueFlag('FILE', 'join: file that holds the token'),
        ca: valueFlag('FILE', "join: the cluster's CA in PEM"),
        'ca-hash': valueFlag('HASH', "join: sha256:... of the CA's public key, instead of --ca"),
        'data-dir': DATA_DIR,
        name: valueFlag('NAME', 'node name (default: the host name)'),
        port: valueFlag('N', 'port of the node API; 0 picks a free one (default: 0)'),
        address: valueFlag(
          'IP',
          'address of this host that the node API is served on and the Node names (default: 127.0.0.1)',
        ),
        ...GUEST_FLAGS,
        'stop-vms': switchFlag(
          'shut guests down when the agent stops; without it they keep running and are adopted later',
        ),
      },
      load: async () => (await import('./node.ts')).node,
    },
    crds: {
      summary: "Print the definitions of KubeVirt's and Config Sync's kinds for an external cluster, as YAML",
      flags: {},
      load: async () => (await import('./crds.ts')).crds,
    },
    rbac: {
      summary: 'Print the accounts and rights of agents and controllers for an external cluster, as YAML',
      words: '[node | controllers]',
      choices: ['node', 'controllers'],
      flags: {
        controllers: { ...CONTROLLERS, summary: 'controllers that will run there, as in coracle controllers' },
      },
      load: async () => (await import('./rbac.ts')).rbac,
    },
    drain: {
      completes: 'nodes',
      summary: 'Empty a node: migrate, shut down or evict each VM, and show the progress',
      words: '[node/]NODE',
      flags: {
        'what-if': switchFlag('change nothing; show for each VM what would happen and what would block it'),
        timeout: valueFlag('SECONDS', 'give up after this long; the node stays cordoned (default: 3600)'),
        explain: EXPLAIN,
        namespace: { ...NAMESPACE, summary: 'accepted as in kubectl; nodes have no namespace' },
        ...SERVER,
        json: JSON_OUT,
      },
      load: async () => (await import('./drain.ts')).drain,
    },
    systemd: {
      summary: 'Print a systemd unit that shuts guests down in time when the host stops: up or node',
      words: '[up | node]',
      choices: ['up', 'node'],
      flags: {
        'data-dir': DATA_DIR,
        budget: valueFlag('SECONDS', 'time that guests have to migrate or shut down (default: 240)'),
        drain: switchFlag('node: drain first, in the first half of the budget'),
        'bind-address': valueFlag('IP', 'up: as coracle up takes it'),
        address: valueFlag('IP', 'node: as coracle node takes it'),
        name: valueFlag('NAME', 'node to drain (default: the host name)'),
        kubeconfig: valueFlag('FILE', 'who drains'),
      },
      load: async () => (await import('./systemd.ts')).systemd,
    },
    token: {
      summary: 'Tokens by which agents on other machines join: create, list, delete ID',
      words: 'create | list | delete ID',
      choices: ['create', 'list', 'delete'],
      flags: {
        ...SERVER,
        ttl: valueFlag('TIME', 'how long a new token is valid: 30m, 24h, 7d; 0 = forever (default: 24h)'),
        description: valueFlag('TEXT', 'what a new token is for'),
        json: JSON_OUT,
      },
      load: async () => (await import('./token.ts')).token,
    },
    identity: {
      summary: 'Firmware UUIDs: list them and where they come from, write those of older VMs into manifests',
      words: 'audit | pin FILE...',
      choices: ['audit', 'pin'],
      flags: {
        output: valueFlag('FORMAT', 'audit: table or json (default: table)', { short: 'o' }),
        backup: valueFlag('DIR', 'audit: a backup directory instead of a server'),
        'in-place': switchFlag('pin: write the files, not standard output; - reads input', { short: 'i' }),
        ...SERVER,
        json: JSON_OUT,
      },
      load: async () => (await import('./identity.ts')).identity,
    },
    protect: {
      summary: 'Protection from deletion: what protected VMs keep (status), VMs that should be protected (audit)',
      words: 'audit | status [[vm] NAME[.NAMESPACE]]',
      choices: ['audit', 'status'],
      flags: {
        output: OUTPUT,
        namespace: NAMESPACE,
        'all-namespaces': ALL_NAMESPACES,
        ...SERVER,
        json: JSON_OUT,
      },
      load: async () => (await import('./protect.ts')).protect,
    },
    undelete: {
      group: 'Machines',
      completes: 'deleted',
      summary: 'Bring a deleted VM back, with its disks, firmware state and identity',
      words: '[vm] NAME[.NAMESPACE]',
      flags: {
        name: valueFlag('NEW', 'a new name for it, and for those of its objects whose names are taken'),
        'new-identity': switchFlag(
          'a new firmware UUID, serial number and MAC addresses, where another VM uses the old ones',
        ),
        record: valueFlag('RECORD', 'which one, where several of that name were deleted (default: the last one)'),
        timeout: valueFlag('SECONDS', 'how long to wait for it (default: 120)'),
        ...CLUSTER,
        json: JSON_OUT,
      },
      load: async () => (await import('./undelete.ts')).undelete,
    },
    bin: {
      summary: 'Deleted VMs that can be brought back: list them and their space, or release it (empty [NAME])',
      words: 'list | empty [[vm] NAME[.NAMESPACE]]',
      choices: ['list', 'empty'],
      flags: {
        namespace: NAMESPACE,
        'all-namespaces': ALL_NAMESPACES,
        ...SERVER,
        json: JSON_OUT,
      },
      load: async () => (await import('./bin.ts')).bin,
    },
  }),
  commandGroup(
    'sync',
    'RootSyncs and RepoSyncs: what a commit would do, who owns a field, ignore rules',
    SYNC_COMMANDS,
  ),
  commandGroup('nomos', 'Sources of RootSyncs and RepoSyncs, with the flags of upstream’s nomos', NOMOS_COMMANDS),
  ...inGroup('More commands', {
    version: {
      summary: 'Print the version',
      flags: { json: JSON_OUT },
      load: async () => (await import('./version.ts')).version,
    },
    'complete-names': {
      summary: 'Print names for completion, of one kind',
      words: 'KIND',
      choices: NAME_KINDS,
      hidden: true,
      flags: CLUSTER,
      load: async () => (await import('./complete-names.ts')).completeNames,
    },
    completion: {
      summary: 'Print a completion script: bash, zsh or fish',
      words: 'SHELL',
      choices: ['bash', 'zsh', 'fish'],
      flags: {},
      load: async () => (await import('./completion.ts')).completionOf(COMMANDS),
    },
  }),
];

const withExamples = (row: Command): Command => ({
  ...row,
  ...(Object.hasOwn(EXAMPLES, row.name) && { examples: EXAMPLES[row.name]! }),
  ...(row.subcommands && { subcommands: row.subcommands.map(withExamples) }),
});

export const COMMANDS: readonly Command[] = ROWS.map(withExamples);
