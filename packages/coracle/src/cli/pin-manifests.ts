/**
 * Writes the UUID of the name into virtual machines of manifests that have none. It is put into the text where it belongs
 * and nothing else is touched: comments, order, quotes and blanks stay as they were.
 */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { decideIdentity } from '@coracle/kubevirt/rules/identity/decide-identity';
import { isMap, isScalar, isSeq, type Pair, parseAllDocuments, type YAMLMap } from 'yaml';
import { CommandError } from './command.ts';

export interface Pinned {
  readonly text: string;
  /** Names of the machines that got a UUID. */
  readonly machines: readonly string[];
}

interface Edit {
  readonly at: number;
  readonly until: number;
  readonly text: string;
}

/** Far more documents than anybody exports into one file. */
const MOST_MACHINES = 100_000;

/** `file` names the text in errors. Throws CommandError for what is no YAML, or cannot be written in its place. */
export function pinManifests(text: string, file: string): Pinned {
  const machines: string[] = [];
  const edits: Edit[] = [];
  const wanted: unknown[] = [];
  for (const document of documentsOf(text, file)) {
    for (const machine of machinesIn(document.contents)) {
      const name = textAt(machine, ['metadata', 'name']);
      const domain = machine.getIn(['spec', 'template', 'spec', 'domain']);
      if (name === undefined || textAt(machine, ['spec', 'template', 'spec', 'domain', 'firmware', 'uuid'])) continue;
      if (machines.length >= MOST_MACHINES) throw new CommandError(`${file} holds more than ${MOST_MACHINES} machines`);
      if (!isMap(domain))
        throw new CommandError(
          `${file}: VirtualMachine ${name} has no domain of its own to write a UUID into (write YAML aliases out first)`,
        );
      const { uuid = '' } = decideIdentity({ type: 'import', firmware: undefined, vmName: name });
      edits.push(editFor(domain, uuid, { name, file, text }));
      machines.push(name);
    }
  }
  for (const document of documentsOf(text, file)) wanted.push(withUuids(document.toJS(TO_JS)));
  const pinned = apply(text, edits);
  const got = documentsOf(pinned, file).map((document): unknown => document.toJS(TO_JS));
  if (!deepEqual(got, wanted))
    throw new CommandError(`${file}: machines share parts by YAML aliases; write them out, then pin`);
  return { text: pinned, machines };
}

/** Aliases beyond this are an attack, not a manifest. */
const TO_JS = { maxAliasCount: 100 };

function documentsOf(text: string, file: string) {
  const parsed = parseAllDocuments(text, { keepSourceTokens: true });
  const documents = Array.isArray(parsed) ? parsed : [];
  for (const { errors } of documents)
    if (errors.length > 0) throw new CommandError(`${file} is not valid YAML: ${errors[0]!.message.split('\n')[0]}`);
  for (const { contents } of documents)
    if (contents !== null && !(isScalar(contents) && contents.value === null) && !isObject(contents))
      throw new CommandError(`${file} holds a document that is not an object: it has no kind`);
  return documents;
}

const isObject = (node: unknown): boolean => isMap(node) && typeof node.get('kind') === 'string';

/** Virtual machines of a document: itself, or the items of a list. */
function machinesIn(node: unknown): YAMLMap[] {
  if (!isMap(node)) return [];
  const kind = node.get('kind');
  if (kind === 'VirtualMachine') return [node];
  const items = node.get('items');
  return (kind === 'List' || kind === 'VirtualMachineList') && isSeq(items) ? items.items.flatMap(machinesIn) : [];
}

function textAt(node: YAMLMap, path: readonly string[]): string | undefined {
  const value = node.getIn(path);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function editFor(
  domain: YAMLMap,
  uuid: string,
  { name, file, text }: { readonly name: string; readonly file: string; readonly text: string },
): Edit {
  const firmware = pairOf(domain, 'firmware');
  const edit = firmware
    ? isMap(firmware.value)
      ? editOfMember(firmware.value, uuid, text)
      : replaced(firmware, `{uuid: ${uuid}}`)
    : inserted(domain, text, { flow: `"firmware": {"uuid": "${uuid}"}`, block: ['firmware:', `  uuid: ${uuid}`] });
  if (!edit)
    throw new CommandError(
      `${file}: the firmware of VirtualMachine ${name} is written in a form that is not supported`,
    );
  return edit;
}

function editOfMember(firmware: YAMLMap, uuid: string, text: string): Edit | undefined {
  const member = pairOf(firmware, 'uuid');
  if (member) return replaced(member, JSON.stringify(uuid));
  return inserted(firmware, text, { flow: `"uuid": "${uuid}"`, block: [`uuid: ${uuid}`] });
}

const pairOf = (map: YAMLMap, key: string): Pair | undefined =>
  map.items.find((pair) => isScalar(pair.key) && pair.key.value === key);

/** A value that is null or empty gives way. */
function replaced(pair: Pair, value: string): Edit | undefined {
  const { range } = (pair.value ?? {}) as { range?: [number, number, number] | null };
  const key = (pair.key as { range?: [number, number, number] | null }).range;
  if (range && range[1] > range[0]) return { at: range[0], until: range[1], text: value };
  // Nothing is written after the colon.
  return key ? { at: key[1] + 1, until: key[1] + 1, text: ` ${value}` } : undefined;
}

/** Puts members in front of the first one of a map. */
function inserted(
  map: YAMLMap,
  text: string,
  { flow, block }: { readonly flow: string; readonly block: readonly string[] },
): Edit | undefined {
  const first = (map.items[0]?.key as { range?: [number, number, number] | null } | undefined)?.range;
  if (map.flow) {
    const at = (map.range?.[0] ?? -1) + 1;
    return at > 0 ? { at, until: at, text: map.items.length > 0 ? `${flow}, ` : flow } : undefined;
  }
  if (!first) return undefined;
  const lineStart = text.lastIndexOf('\n', first[0] - 1) + 1;
  const indent = ' '.repeat(first[0] - lineStart);
  return { at: first[0], until: first[0], text: block.map((line) => `${line}\n${indent}`).join('') };
}

/** From the end to the front, so that no edit moves another. */
function apply(text: string, edits: readonly Edit[]): string {
  let next = text;
  for (const { at, until, text: put } of [...edits].sort((a, b) => b.at - a.at))
    next = next.slice(0, at) + put + next.slice(until);
  return next;
}

/** What the text has to say afterwards. */
function withUuids(value: unknown): unknown {
  const object = value as { kind?: unknown; items?: unknown[] } | null;
  if (object?.kind === 'VirtualMachine') return withUuid(object as unknown as Manifest);
  return (object?.kind === 'List' || object?.kind === 'VirtualMachineList') && Array.isArray(object.items)
    ? { ...object, items: object.items.map(withUuids) }
    : value;
}

interface Manifest {
  readonly metadata?: { readonly name?: unknown };
  readonly spec?: { readonly template?: { readonly spec?: { readonly domain?: Record<string, unknown> } } };
}

function withUuid(vm: Manifest): unknown {
  const name = vm.metadata?.name;
  const domain = vm.spec?.template?.spec?.domain;
  const firmware = domain?.['firmware'] as { uuid?: string } | null | undefined;
  if (typeof name !== 'string' || name === '' || !domain || firmware?.uuid) return vm;
  const { uuid } = decideIdentity({ type: 'import', firmware: undefined, vmName: name });
  const { template } = vm.spec!;
  return {
    ...vm,
    spec: {
      ...vm.spec,
      template: {
        ...template,
        spec: { ...template!.spec, domain: { ...domain, firmware: { ...firmware, uuid } } },
      },
    },
  };
}
