/** `coracle export NAME`: a disk of a stopped machine, of a snapshot or of a claim, as a file of this host. */
import { resolve } from 'node:path';
import { KUBEVIRT_GROUP, SNAPSHOT_GROUP } from '@coracle/kubevirt/kinds/kinds';
import { clusterFrom } from '../../config/cluster.ts';
import { type CommandContext, CommandError, numberFlag, textFlag, UsageError } from '../command.ts';
import { sizeText } from '../size-text.ts';
import { checkFree, downloadExport, type ExportedVolume, type Wanted } from './download-export.ts';
import { equivalent, isExplained } from './equivalent.ts';
import { textOf, withMachine } from './find-machine.ts';

const DEFAULT_TIMEOUT_S = 300;
const LONGEST_TIMEOUT_S = 86_400;
const FORMATS = ['gzip', 'raw'] as const;
type Format = (typeof FORMATS)[number];

/** Words before the slash, and virtctl's flag for them. */
const KINDS: Readonly<Record<string, { readonly kind: string; readonly apiGroup: string; readonly flag: string }>> = {
  snapshot: { kind: 'VirtualMachineSnapshot', apiGroup: SNAPSHOT_GROUP, flag: '--snapshot' },
  claim: { kind: 'PersistentVolumeClaim', apiGroup: '', flag: '--pvc' },
  pvc: { kind: 'PersistentVolumeClaim', apiGroup: '', flag: '--pvc' },
};

/** `coracle export`. */
export async function exportDisk(context: CommandContext): Promise<number> {
  const { words, flags } = context;
  const [word, ...more] = words;
  if (word === undefined || more.length > 0)
    throw new UsageError('export takes a machine, snapshot/NAME or claim/NAME (see: coracle export --help)');
  const format = textFlag(flags, 'format') ?? 'gzip';
  if (!FORMATS.includes(format as Format)) throw new UsageError(`--format takes ${FORMATS.join(' or ')}`);
  const [prefix = '', name, ...rest] = word.split('/');
  if (name !== undefined && Object.hasOwn(KINDS, prefix)) {
    if (name === '' || rest.length > 0) throw new UsageError(`${word} names nothing: ${prefix}/NAME`);
    await using cluster = await clusterFrom(context);
    const key = { namespace: textFlag(flags, 'namespace') ?? cluster.namespace, name };
    return await fetchDisk(context, { client: cluster.client, key, format: format as Format, what: KINDS[prefix]! });
  }
  return withMachine(context, word, ({ client, key }) =>
    fetchDisk(context, {
      client,
      key,
      format: format as Format,
      what: { kind: 'VirtualMachine', apiGroup: KUBEVIRT_GROUP, flag: '--vm' },
    }),
  );
}

interface Fetching {
  readonly client: Parameters<typeof downloadExport>[1];
  readonly key: { readonly namespace: string; readonly name: string };
  readonly format: Format;
  readonly what: { readonly kind: string; readonly apiGroup: string; readonly flag: string };
}

async function fetchDisk(context: CommandContext, { client, key, format, what }: Fetching): Promise<number> {
  const { flags, print } = context;
  const volume = textFlag(flags, 'volume');
  const output = textFlag(flags, 'output');
  if (isExplained(context))
    return equivalent(context, [
      ...['virtctl', 'vmexport', 'download', `export-${key.name}`, `${what.flag}=${key.name}`, '-n', key.namespace],
      ...(volume === undefined ? [] : [`--volume=${volume}`]),
      `--output=${output ?? `${volume ?? key.name}.img${format === 'gzip' ? '.gz' : ''}`}`,
      ...(format === 'raw' ? ['--format=raw'] : []),
    ]);
  const isForced = flags['force'] === true;
  if (output !== undefined) await checkFree(resolve(output), isForced);
  const { flag: _, ...source } = what;
  const seconds = numberFlag(flags, 'timeout', { min: 1, max: LONGEST_TIMEOUT_S, or: DEFAULT_TIMEOUT_S });
  const request = { namespace: key.namespace, source: { ...source, name: key.name }, seconds };
  const { file, bytes } = await downloadExport(context, client, request, (volumes) =>
    chooseForm(chooseVolume(volumes, volume, textOf(key)), format, output),
  );
  print(`${file} is there, ${sizeText(bytes)}`);
  return 0;
}

/** The only one, or that of the name. Throws CommandError. */
export function chooseVolume(volumes: readonly ExportedVolume[], name: string | undefined, of: string): ExportedVolume {
  const [only, ...more] = name === undefined ? volumes : volumes.filter((one) => one.name === name);
  if (only && more.length === 0) return only;
  const names = volumes.map((one) => one.name).join(', ');
  throw new CommandError(
    name === undefined
      ? `${of} has ${volumes.length} volumes: --volume is one of ${names}`
      : `${of} has no volume ${name}: it has ${names}`,
  );
}

/** Files come as an archive, which is packed; a disk comes as it is asked for. Throws CommandError. */
export function chooseForm({ name, formats = [] }: ExportedVolume, format: Format, output: string | undefined): Wanted {
  const urlOf = (one: string): string | undefined => formats.find((each) => each.format === one)?.url;
  const archive = urlOf('tar.gz');
  const url = archive ?? urlOf(format);
  if (url === undefined) throw new CommandError(`volume ${name} is not offered as ${format}`);
  const suffix = `${archive === undefined ? '.img' : '.tar'}${format === 'gzip' ? '.gz' : ''}`;
  return { url, isPacked: archive !== undefined && format === 'raw', file: resolve(output ?? `${name}${suffix}`) };
}
