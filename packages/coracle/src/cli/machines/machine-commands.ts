/** The commands about machines, one row each. */
import { ALL_NAMESPACES, CLUSTER, EXPLAIN, JSON_OUT, SERVER, under } from '../cluster-flags.ts';
import { type Command, type FlagSpec, switchFlag, valueFlag } from '../command.ts';

const NAME = '[vm/]NAME[.NAMESPACE]';
const NAMES = `${NAME}...`;

/** A command about machines that are there: its words are completed, and it can say which calls do the same. */
const machine = (row: Omit<Command, 'group' | 'completes'>): Command => ({
  ...row,
  group: 'Machines',
  completes: 'machines',
  flags: { ...row.flags, explain: EXPLAIN, ...CLUSTER },
});

const WAIT: Readonly<Record<string, FlagSpec>> = {
  wait: switchFlag('wait until it is done'),
  timeout: valueFlag('SECONDS', 'how long to wait (default: 300)'),
};
const DOWNLOAD: Readonly<Record<string, FlagSpec>> = {
  output: valueFlag('FILE', 'file to write; it appears whole or not at all', { short: 'o' }),
  force: switchFlag('replace a file that is there'),
  timeout: valueFlag('SECONDS', 'how long to wait until it can be downloaded'),
};
const GUEST: Readonly<Record<string, FlagSpec>> = {
  login: valueFlag('USER', 'user in the guest (default: that of its cloud-init data)', { short: 'l' }),
  identity: valueFlag('FILE', "private key (default: the user's own)", { short: 'i' }),
  option: valueFlag('OPTION', 'option for ssh; may be given again', { short: 'o', multiple: true }),
  port: valueFlag('N', 'port of the SSH server in the guest (default: 22)'),
  timeout: valueFlag('SECONDS', 'how long to wait for the guest (default: 120)'),
};

const power = (
  name: 'start' | 'stop' | 'restart' | 'pause' | 'unpause',
  row: { readonly summary: string; readonly examples: readonly string[]; readonly flags?: Record<string, FlagSpec> },
): Command =>
  machine({
    ...row,
    name,
    words: NAMES,
    flags: { ...row.flags, json: JSON_OUT },
    load: async () => (await import('./power.ts')).power(name),
  });

const FORCE = switchFlag('end the guest at once');

export const MACHINE_COMMANDS: readonly Command[] = [
  {
    name: 'create',
    summary: 'Make a machine from an image and start it; starts the control plane where none runs',
    words: 'NAME',
    group: 'Machines',
    examples: [
      'coracle create web --image debian:13 --wait && coracle ssh web',
      'coracle create db --image ubuntu:24.04 --cpus 4 --memory 8Gi --disk 40Gi',
      'coracle create web --image debian:13 -p 2222:22 -p 8080:80',
      'coracle create ci --image ./image.qcow2 --cloud-init user-data.yaml',
      'coracle create web --image debian:13 --instancetype u1.medium --dry-run -o yaml | kubectl apply -f -',
    ],
    flags: {
      ...under('What it is made of', {
        image: valueFlag('IMAGE', 'name of coracle images, FILE, URL, or reference of a registry', {
          completes: 'images',
        }),
        disk: valueFlag(
          'SIZE',
          'a persistent disk of this size; without it each start begins with a fresh copy of the image',
        ),
        cpus: valueFlag('N', 'processors (default: 1)'),
        memory: valueFlag('SIZE', 'memory, such as 512Mi or 2Gi (default: what the image needs, else 1Gi)'),
        instancetype: valueFlag(
          'NAME',
          'instance type instead of --cpus and --memory; namespaced/NAME for one of the namespace',
          { completes: 'instancetypes' },
        ),
        preference: valueFlag('NAME', "preference; none for none (default: the image's)", { completes: 'preferences' }),
      }),
      ...under('Access', {
        publish: valueFlag(
          'HOST:GUEST',
          'port of 127.0.0.1 that leads to one of the guest, now and after each start; may be given again (needs up --allow-host-ports)',
          { short: 'p', multiple: true },
        ),
        user: valueFlag('NAME', "user that cloud-init gives the keys to (default: the image's, else yours)"),
        'ssh-key': valueFlag(
          'KEY',
          'public key, or a file of them; may be given again; none for none (default: ~/.ssh/id_ed25519.pub and the like)',
          { multiple: true },
        ),
        'cloud-init': valueFlag('FILE', 'user data for cloud-init; keys are put into a #cloud-config'),
      }),
      'dry-run': switchFlag('make nothing; print the manifest'),
      output: valueFlag('FORMAT', 'yaml or json: print the machine', { short: 'o' }),
      wait: switchFlag('wait until it runs and answers ssh; prints each phase and how long it took'),
      timeout: valueFlag('SECONDS', 'how long to wait (default: 300)'),
      json: JSON_OUT,
      explain: EXPLAIN,
      ...CLUSTER,
    },
    load: async () => (await import('./create.ts')).create,
  },
  machine({
    name: 'ssh',
    summary: 'A shell, or a command, in a guest: with the ssh of this host, through the API',
    words: `[USER@]${NAME} [COMMAND...]`,
    examples: ['coracle ssh web', 'coracle ssh root@web journalctl -n 20', 'coracle ssh web -o ForwardAgent=yes'],
    flags: { ...GUEST },
    passesOn: true,
    load: async () => (await import('./ssh.ts')).ssh,
  }),
  machine({
    name: 'cp',
    summary: 'Copy files into a guest or out of it: with the scp of this host, through the API',
    words: 'SOURCE... TARGET',
    examples: ['coracle cp notes.txt web:', 'coracle cp -r root@web:/var/log ./logs'],
    flags: {
      recursive: switchFlag('copy directories with their contents', { short: 'r' }),
      ...GUEST,
    },
    load: async () => (await import('./cp.ts')).cp,
  }),
  machine({
    name: 'port-forward',
    summary: 'Forward ports of this host to ports of a guest while the command runs',
    words: `${NAME} [LOCAL:]PORT...`,
    examples: [
      'coracle port-forward web 8080:80',
      'coracle port-forward web :5432',
      'coracle port-forward --stdio web 22',
    ],
    flags: {
      address: valueFlag('IP', 'address of this host to listen on (default: 127.0.0.1)'),
      wait: valueFlag(
        'SECONDS',
        'with --stdio, for servers that speak first: reconnect for up to this long until one does',
      ),
      stdio: switchFlag('connect the port to standard input and output, for ProxyCommand of ssh'),
    },
    load: async () => (await import('./port-forward.ts')).portForward,
  }),
  machine({
    name: 'vnc',
    summary: 'Serve the screen of a machine at a port of this host, for any VNC viewer, while the command runs',
    words: NAME,
    examples: ['coracle vnc web', 'coracle vnc web --port 5901 --preserve-session'],
    flags: {
      port: valueFlag('N', 'port of this host (default: any that is free)'),
      address: valueFlag('IP', 'address of this host to listen on (default: 127.0.0.1)'),
      'preserve-session': switchFlag('do not disconnect a viewer that is already connected'),
    },
    load: async () => (await import('./vnc.ts')).vnc,
  }),
  machine({
    name: 'screenshot',
    summary: 'Write a picture of the screen of a machine, as a PNG',
    words: `${NAME} FILE`,
    examples: ['coracle screenshot web screen.png', 'coracle screenshot web.shop screen.png --move-cursor'],
    flags: {
      'move-cursor': switchFlag('move the pointer first, to wake a dark screen'),
    },
    load: async () => (await import('./screenshot.ts')).screenshot,
  }),
  power('start', {
    summary: 'Start machines',
    examples: ['coracle start web', 'coracle start web db --wait'],
    flags: { paused: switchFlag('pause it before the first instruction'), ...WAIT },
  }),
  power('stop', {
    summary: 'Stop machines: their guests are asked to shut down',
    examples: ['coracle stop web --wait', 'coracle stop web --force'],
    flags: {
      force: FORCE,
      'grace-period': valueFlag('SECONDS', 'how long the guest may take'),
      ...WAIT,
    },
  }),
  power('restart', {
    summary: 'Stop machines and start them again',
    examples: ['coracle restart web --wait'],
    flags: { force: FORCE, ...WAIT },
  }),
  power('pause', {
    summary: 'Pause machines: their processors stop, their memory stays',
    examples: ['coracle pause web'],
  }),
  power('unpause', { summary: 'Resume paused machines', examples: ['coracle unpause web'] }),
  machine({
    name: 'list',
    summary: 'List machines with state, address and node, and why they do not run',
    words: `[${NAMES}]`,
    examples: ['coracle list', 'coracle list web db.shop', 'coracle list -A --json'],
    flags: {
      quiet: switchFlag('print only names', { short: 'q' }),
      json: JSON_OUT,
      'all-namespaces': ALL_NAMESPACES,
    },
    load: async () => (await import('./list.ts')).list,
  }),
  machine({
    name: 'ip',
    summary: 'Print the addresses of a running machine',
    words: NAME,
    examples: ['coracle ip web', 'coracle ip web.shop --json'],
    flags: { json: JSON_OUT },
    load: async () => (await import('./ip.ts')).ip,
  }),
  machine({
    name: 'expose',
    summary: 'Make a Service for a machine: a name and an address that stay',
    words: NAME,
    examples: ['coracle expose web --port 80', 'coracle expose web --port 8080:80 --type NodePort --name front'],
    flags: {
      port: valueFlag(
        'PORT[:GUEST]',
        'port of the Service and, where it is another, of the guest; 53/udp; may be given again',
        { multiple: true },
      ),
      name: valueFlag('NAME', "name of the Service (default: the machine's)"),
      type: valueFlag('TYPE', 'ClusterIP, NodePort or LoadBalancer (default: ClusterIP)'),
      json: JSON_OUT,
    },
    load: async () => (await import('./expose.ts')).expose,
  }),
  machine({
    name: 'logs',
    summary: 'Print what a guest has written to its serial console',
    words: NAME,
    examples: ['coracle logs web --tail 50', 'coracle logs web -f'],
    flags: {
      follow: switchFlag('keep printing what it writes, through restarts, until it is stopped', { short: 'f' }),
      tail: valueFlag('N', 'the last N lines'),
    },
    load: async () => (await import('./logs.ts')).logs,
  }),
  machine({
    name: 'why',
    summary: 'Explain why a machine does not run, and what to do',
    words: NAME,
    examples: ['coracle why web'],
    flags: { json: JSON_OUT },
    load: async () => (await import('./why.ts')).why,
  }),
  machine({
    name: 'top',
    summary: 'Show the CPU, memory, disk and network usage of machines',
    words: `[${NAMES}]`,
    examples: ['coracle top', 'coracle top web.shop', 'coracle top -A --json'],
    flags: { json: JSON_OUT, 'all-namespaces': ALL_NAMESPACES },
    load: async () => (await import('./top.ts')).top,
  }),
  {
    name: 'upload',
    summary: 'Make a disk (DataVolume) from an image file of this host',
    words: 'NAME FILE',
    group: 'Machines',
    examples: ['coracle upload fedora fedora.qcow2 --size 10Gi', 'coracle upload tools tools.img.gz --size 1Gi'],
    flags: {
      size: valueFlag('SIZE', 'size of the disk (default: that of the image)'),
      'storage-class': valueFlag('NAME', 'storage class (default: the default one)'),
      timeout: valueFlag('SECONDS', 'how long to wait until it can be sent (default: 300)'),
      explain: EXPLAIN,
      ...CLUSTER,
    },
    load: async () => (await import('./upload.ts')).upload,
  },
  machine({
    name: 'export',
    summary: 'Download a disk of a stopped machine, of a snapshot or of a claim into a file of this host',
    words: '[vm/]NAME[.NAMESPACE] | snapshot/NAME | claim/NAME',
    examples: [
      'coracle export db',
      'coracle export db --volume db-disk --output db.img --format raw',
      'coracle export snapshot/db-before-upgrade --output db.img.gz',
      'coracle export claim/dump --output dump.tar.gz',
    ],
    flags: {
      volume: valueFlag('NAME', 'which volume, where there are several'),
      format: valueFlag('FORMAT', 'gzip or raw (default: gzip)'),
      ...DOWNLOAD,
    },
    load: async () => (await import('./export.ts')).exportDisk,
  }),
  {
    name: 'memory-dump',
    summary: 'Dump the memory of a running machine into a claim, and download it as an ELF file',
    words: `get|download|remove ${NAME}`,
    choices: ['get', 'download', 'remove'],
    group: 'Machines',
    examples: [
      'coracle memory-dump get db --claim-name dump --create-claim --output db.elf',
      'coracle memory-dump download db --output db.elf',
      'coracle memory-dump remove db',
    ],
    flags: {
      'claim-name': valueFlag('NAME', 'get: claim that takes the dump (default: that of the last one)'),
      claim: valueFlag('NAME', 'the same as --claim-name'),
      'create-claim': valueFlag(
        'SIZE',
        "get: make the claim first, of this size (default: what the guest's memory needs)",
        {
          bare: 'memory',
        },
      ),
      ...DOWNLOAD,
      explain: EXPLAIN,
      ...CLUSTER,
    },
    load: async () => (await import('./memory-dump.ts')).memoryDump,
  },
  {
    name: 'images',
    summary: 'List the images that create knows by name and those in the local store; refresh: fetch one again',
    words: '[PREFIX] | refresh NAME...',
    choices: ['refresh'],
    completes: 'images',
    group: 'Machines',
    examples: [
      'coracle images',
      'coracle images debian',
      'coracle images refresh debian:13',
      'coracle images refresh debian:13 --vendor',
      'coracle images refresh debian:13 --from https://mirror/debian-13.qcow2 --checksums https://mirror/SHA512SUMS',
    ],
    flags: {
      vendor: switchFlag("refresh: the vendor's own file, checked against the vendor's list of digests"),
      from: valueFlag('URL', 'refresh: another file (http, https), or an image of a registry (docker://IMAGE)'),
      checksums: valueFlag('URL', 'refresh: list of digests (SHA-256 or SHA-512) that has the file'),
      json: JSON_OUT,
      ...SERVER,
    },
    load: async () => (await import('./images.ts')).images,
  },
];
