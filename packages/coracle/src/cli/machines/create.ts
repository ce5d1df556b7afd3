/** `coracle create NAME --image IMAGE`: a machine, from a control plane that is started for it where none runs. */

import { existsSync } from 'node:fs';
import { userInfo } from 'node:os';
import { resolve } from 'node:path';
import { checkSubdomain } from '@coracle/apimachinery/meta/name-rules';
import type { ObjectKey } from '@coracle/apimachinery/meta/object';
import { ApiError } from '@coracle/apimachinery/meta/status';
import { isNotFound } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import { VIRTUAL_MACHINES, type VirtualMachine, type VirtualMachineInstance } from '@coracle/kubevirt/kinds/kinds';
import { storedEntries } from '@coracle/node-agent/image/store-entries';
import { systemClock } from '@coracle/runtime/clock/clock';
import { stringify } from 'yaml';
import { clusterFrom } from '../../config/cluster.ts';
import type { DataDir } from '../../config/data-dir.ts';
import {
  type CommandContext,
  CommandError,
  fileProblem,
  listFlag,
  numberFlag,
  textFlag,
  UsageError,
} from '../command.ts';
import { readInputFile } from '../input-file.ts';
import { machineTargets } from '../machine-target.ts';
import { cloudConfig, machineManifest, type RootDisk, readPublished, readSize, withKeys } from './create-manifest.ts';
import { needDataVolumes } from './data-volume-support.ts';
import { isExplained, shellWord } from './equivalent.ts';
import { textOf } from './find-machine.ts';
import { followStart } from './follow-start.ts';
import { awaitGuestPort } from './guest-port.ts';
import { type CatalogueImage, defaultOrigin, IMAGES_NAMESPACE, isBuiltHere, sourceNameOf } from './image-catalogue.ts';
import { chooseImage, type ImageChoice, isLocalReference } from './image-choice.ts';
import { needTypes } from './need-types.ts';
import { publicKeys } from './ssh-keys.ts';
import { awaitFirstNode, ensureControlPlane, localDataDir } from './start-control-plane.ts';

const DEFAULT_MEMORY = '1Gi';
const DEFAULT_DISK = '10Gi';
const DEFAULT_TIMEOUT_S = 300;
const LONGEST_TIMEOUT_S = 86_400;
const SSH_PORT = 22;
/** Inline user data of a NoCloud volume, as KubeVirt bounds it. */
const MAX_USER_DATA = 2048;
/** Names of users as useradd takes them. */
const USER = /^[a-z_][a-z0-9_-]{0,31}$/;

/** `coracle create`. */
export async function create(context: CommandContext): Promise<number> {
  const { flags, words, print, note, signal } = context;
  const [word, ...more] = words;
  if (word === undefined || more.length > 0) throw new UsageError('create takes one NAME (see: coracle create --help)');
  const name = readName(word);
  const text = textFlag(flags, 'image');
  if (text === undefined)
    throw new UsageError(
      'create takes an image: --image NAME|FILE|URL|REFERENCE (those known by name: coracle images)',
    );
  const choice = chooseImage(text);
  const dryRun = flags['dry-run'] === true || isExplained(context);
  const format = outputOf(context, dryRun);
  const seconds = numberFlag(flags, 'timeout', { min: 1, max: LONGEST_TIMEOUT_S, or: DEFAULT_TIMEOUT_S });
  const manifest = await manifestFor(context, { name, choice, mayMake: !dryRun });
  if (dryRun) {
    if (choice.kind === 'file')
      note(
        `coracle create puts the image into the local store too; for this manifest alone: coracle image import ${localName(name, manifest.metadata.namespace)} ${shellWord(choice.path)}`,
      );
    const written = format === 'json' ? JSON.stringify(manifest, undefined, 2) : stringify(manifest, { lineWidth: 0 });
    print(isExplained(context) ? `kubectl create -f - <<'EOF'\n${written.trimEnd()}\nEOF` : written);
    return 0;
  }
  const begun = systemClock.monotonic();
  const dir = localDataDir(context);
  const importFile = await checkImage(context, { choice, manifest, dir });
  const publishes = listFlag(flags, 'publish').length > 0;
  if (dir) await ensureControlPlane(context, dir, { allowsHostPorts: publishes });
  const cluster = await clusterFrom(dir ? { ...context, flags: { ...flags, 'data-dir': dir.root } } : context);
  try {
    const { client } = cluster;
    const key = { namespace: manifest.metadata.namespace ?? cluster.namespace, name };
    const isFetched = choice.kind === 'catalogue' && !isBuiltHere(choice.image);
    if (isFetched || choice.kind === 'file') await needFreeName(client, key, signal);
    await needTypes(client, manifest.spec, { namespace: key.namespace, signal });
    if (manifest.spec.dataVolumeTemplates) await needDataVolumes(client);
    await importFile();
    if (isFetched) await provideCatalogued(context, client, choice.image);
    if (dir) await awaitFirstNode(dir, client, { namespace: key.namespace, signal });
    const made = await createMachine(
      client,
      { ...manifest, metadata: { ...manifest.metadata, namespace: key.namespace } },
      signal,
    );
    if (manifest.spec.dataVolumeTemplates === undefined)
      note(`the disk of ${name} is a fresh copy of its image at each start (--disk SIZE makes a persistent one)`);
    const at = (): string => `${((systemClock.monotonic() - begun) / 1000).toFixed(1)} s`;
    const quiet = format !== 'text';
    if (!quiet) print(`${textOf(key)} created${flags['wait'] === true ? `  ${at()}` : ''}`);
    if (flags['wait'] === true) {
      const phase = (what: string): void => void (!quiet && print(`${textOf(key)} ${what}  ${at()}`));
      const vmi = await followStart({ client, key, signal, note: context.progress }, { seconds, onPhase: phase }).catch(
        (error: unknown) => {
          throw signal.aborted ? goesOn(key) : error;
        },
      );
      if (publishes) notePorts(note, vmi);
      if (hasKeys(manifest)) {
        await awaitGuestPort({ cluster, key, port: SSH_PORT, signal }, seconds);
        phase('answers ssh');
      }
    }
    if (publishes && flags['wait'] !== true) note(`whether it has its ports: coracle why ${name} -n ${key.namespace}`);
    if (!quiet && flags['wait'] !== true)
      note(`next: coracle ssh ${name}${textFlag(flags, 'namespace') ? ` -n ${key.namespace}` : ''}`);
    if (format === 'json') print(JSON.stringify(made));
    if (format === 'yaml') print(stringify(made, { lineWidth: 0 }));
    return 0;
  } finally {
    await cluster.close();
  }
}

/** What the file of a machine is called in the local store. */
const localName = (name: string, namespace = 'default'): string => `vm/${namespace}/${name}`;

/** `NAME` or `vm/NAME`. Throws UsageError for what can be no name, before anything is started for it. */
function readName(word: string): string {
  const name = machineTargets(word, { given: '', ofContext: '' })[0]?.name ?? word;
  if (checkSubdomain(name).length > 0)
    throw new UsageError(
      `a machine is named with small letters, digits, "-" and ".", a letter or digit first and last: not "${name}"`,
    );
  return name;
}

/** Throws UsageError. */
function outputOf({ flags }: CommandContext, dryRun: boolean): 'text' | 'json' | 'yaml' {
  const output = textFlag(flags, 'output') ?? (flags['json'] === true ? 'json' : dryRun ? 'yaml' : 'text');
  if (output !== 'json' && output !== 'yaml' && output !== 'text')
    throw new UsageError(`-o takes yaml or json, not ${output}`);
  return output;
}

async function manifestFor(
  context: CommandContext,
  { name, choice, mayMake }: { readonly name: string; readonly choice: ImageChoice; readonly mayMake: boolean },
): Promise<VirtualMachine> {
  const { flags } = context;
  const namespace = textFlag(flags, 'namespace');
  const known = choice.kind === 'catalogue' ? choice.image : undefined;
  const instancetype = textFlag(flags, 'instancetype');
  const [cpus, memory] = [textFlag(flags, 'cpus'), textFlag(flags, 'memory')];
  if (instancetype !== undefined && (cpus !== undefined || memory !== undefined))
    throw new UsageError('an instance type says how much a machine has: give --instancetype, or --cpus and --memory');
  const preference = textFlag(flags, 'preference') ?? known?.preference;
  const user = textFlag(flags, 'user') ?? known?.user ?? localUser();
  if (!USER.test(user))
    throw new UsageError(`--user takes a user name (small letters, digits, "_" and "-"), not "${user}"`);
  return machineManifest({
    name,
    namespace,
    root: rootDisk(context, choice, localName(name, namespace)),
    cpus: cpus === undefined ? undefined : numberFlag(flags, 'cpus', { min: 1, max: 512, or: 1 }),
    memory:
      memory !== undefined
        ? readSize(memory, 'memory')
        : instancetype === undefined
          ? (known?.memory ?? DEFAULT_MEMORY)
          : undefined,
    instancetype,
    preference: preference === 'none' ? undefined : preference,
    ports: readPublished(listFlag(flags, 'publish')),
    userData: userDataFor(context, { user, keys: await publicKeys(context, { mayMake }) }),
  });
}

/** Whoever runs the command, where a guest can have a user of that name. */
function localUser(): string {
  const { username } = userInfo();
  return USER.test(username) && username !== 'root' ? username : 'coracle';
}

function rootDisk({ flags }: CommandContext, choice: ImageChoice, local: string): RootDisk {
  const given = textFlag(flags, 'disk');
  const size = given === undefined ? undefined : readSize(given, 'disk');
  switch (choice.kind) {
    case 'url':
      return { kind: 'data-volume', source: { http: choice.url }, size: size ?? DEFAULT_DISK };
    case 'file':
      return size === undefined
        ? { kind: 'container-disk', image: `localhost/${local}` }
        : { kind: 'data-volume', source: { registry: `docker://localhost/${local}` }, size };
    case 'reference':
      return size === undefined
        ? { kind: 'container-disk', image: choice.reference }
        : { kind: 'data-volume', source: { registry: `docker://${choice.reference}` }, size };
    case 'catalogue': {
      const { image } = choice;
      if (image.containerDisk === undefined || !isBuiltHere(image)) {
        const dataSource = { namespace: IMAGES_NAMESPACE, name: sourceNameOf(image) };
        return { kind: 'data-volume', source: { dataSource }, size };
      }
      return size === undefined
        ? { kind: 'container-disk', image: image.containerDisk }
        : { kind: 'data-volume', source: { registry: `docker://${image.containerDisk}` }, size };
    }
    default:
      return choice satisfies never;
  }
}

/** Throws UsageError for what KubeVirt would not take. */
function userDataFor(
  { flags, note }: CommandContext,
  given: { readonly user: string; readonly keys: readonly string[] },
): string {
  const path = textFlag(flags, 'cloud-init');
  if (path === undefined) return cloudConfig(given);
  let text: string;
  try {
    text = readInputFile(path);
  } catch (error) {
    throw new UsageError(`--cloud-init: ${fileProblem(path, error)}`);
  }
  const data = withKeys(text, given);
  if (data === undefined) note(`${path} is not a #cloud-config: no SSH key is put into it`);
  if (new TextEncoder().encode(data ?? text).length > MAX_USER_DATA)
    throw new UsageError(
      `--cloud-init: ${path} is longer than ${MAX_USER_DATA} bytes with the keys, the most that a machine may contain; put it into a Secret and refer to that: cloudInitNoCloud.secretRef`,
    );
  return data ?? text;
}

const hasKeys = ({ spec }: VirtualMachine): boolean =>
  spec.template.spec?.volumes?.some(({ cloudInitNoCloud }) =>
    /^ssh_authorized_keys:(?!\s*\[\])/m.test(cloudInitNoCloud?.userData ?? ''),
  ) ?? false;

/** Throws CommandError for an image that only the local store can have and has not. Resolves to what puts a file into it. */
async function checkImage(
  context: CommandContext,
  what: { readonly choice: ImageChoice; readonly manifest: VirtualMachine; readonly dir: DataDir | undefined },
): Promise<() => Promise<void>> {
  const nothing = async (): Promise<void> => {};
  const { choice, manifest, dir } = what;
  const { dataVolumeTemplates, template } = manifest.spec;
  const image =
    template.spec?.volumes?.[0]?.containerDisk?.image ??
    dataVolumeTemplates?.[0]?.spec?.source?.registry?.url?.replace('docker://', '');
  if (image === undefined || !isLocalReference(image)) return nothing;
  if (dir === undefined) {
    if (choice.kind !== 'file') return nothing;
    throw new CommandError(
      `${choice.path} is a file of this host, and the cluster is on another one: push it to a registry, or name the data directory of a control plane on this host (--data-dir DIR)`,
    );
  }
  if (choice.kind === 'file') {
    const path = resolve(choice.path);
    if (!existsSync(path)) throw new CommandError(`there is no file ${path}`);
    return async () => {
      const { importFiles } = await import('../image.ts');
      await importFiles(context, dir, { name: image, what: path, disk: path });
    };
  }
  const here = await storedEntries(dir.images);
  if (!here.some(({ entry: { reference } }) => reference.replace(/:latest$/, '') === image.replace(/:latest$/, '')))
    throw new CommandError(
      `${image} is not in the local store (coracle image list); put it there: coracle image import ${image.replace('localhost/', '')} FILE${
        choice.kind === 'catalogue' ? ', the files of: sh tools/setup/run.sh tools/guest/build.ts --out DIR' : ''
      }`,
    );
  return nothing;
}

/** Ports that the node does not give are no failure of the machine: they are said. */
function notePorts(note: (text: string) => void, vmi: VirtualMachineInstance): void {
  const missing = vmi.status?.conditions?.find(({ type, status }) => type === 'PortsForwarded' && status === 'False');
  if (missing) note(`${missing.message ?? 'not all ports are forwarded'} (coracle up --allow-host-ports)`);
}

/** Fetches an image of the catalogue that nobody has fetched yet. */
async function provideCatalogued(
  { note, progress, signal }: CommandContext,
  client: Client,
  image: CatalogueImage,
): Promise<void> {
  const { fetchedImages, fetchImage } = await import('./os-images.ts');
  if ((await fetchedImages(client, signal)).has(sourceNameOf(image))) return;
  note(`fetching ${image.name}, once for all machines (coracle images refresh ${image.name} fetches it again)`);
  await fetchImage(image, defaultOrigin(image), { client, signal, progress });
}

async function createMachine(client: Client, vm: VirtualMachine, signal: AbortSignal): Promise<VirtualMachine> {
  try {
    return await client.create(VIRTUAL_MACHINES, vm, { signal, fieldValidation: 'Strict' });
  } catch (error) {
    if (!(error instanceof ApiError) || error.reason !== 'AlreadyExists') throw error;
    throw nameTaken({ namespace: vm.metadata.namespace ?? '', name: vm.metadata.name ?? '' });
  }
}

/** Before an image is fetched for a machine that cannot be made. Who may not look learns of it later. */
async function needFreeName(client: Client, key: ObjectKey, signal: AbortSignal): Promise<void> {
  try {
    await client.get(VIRTUAL_MACHINES, key, { metadataOnly: true, signal });
  } catch (error) {
    if (error instanceof ApiError && (error.code === 403 || isNotFound(error))) return;
    throw error;
  }
  throw nameTaken(key);
}

const goesOn = ({ namespace, name }: ObjectKey): CommandError =>
  new CommandError(
    `interrupted: ${namespace}/${name} is made, and starts all the same (how far it is: coracle why ${name} -n ${namespace}; to undo it: coracle delete ${name} -n ${namespace})`,
  );

const nameTaken = ({ namespace, name }: ObjectKey): CommandError =>
  new CommandError(
    `machine ${namespace}/${name} already exists (coracle ssh ${name} -n ${namespace}; to start over: coracle delete ${name} -n ${namespace})`,
  );
