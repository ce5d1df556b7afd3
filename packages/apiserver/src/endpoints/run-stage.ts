/**
 * One stage of a large write, done where this is called: on a thread of its own. It is the same code as for small writes;
 * only that objects come and go as JSON.
 */

import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { mayBecomeNull } from '@coracle/apimachinery/schema/empty-to-null';
import { parseStored } from '@coracle/apimachinery/schema/parse-json';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import type { Decision } from '../cache/object-store.ts';
import { ownObject } from '../cache/stored-object.ts';
import { withVersion, writeAroundVersion } from '../cache/written-object.ts';
import { bodyKind } from '../kinds/builtin/body-kinds.ts';
import { asCrd } from '../kinds/custom/crd.ts';
import { customResourceInfos } from '../kinds/custom/custom-resource-info.ts';
import { beginCreate, completeCreate, dropsStatus, storeDecision } from '../registry/create.ts';
import { createFieldManagement } from '../registry/field-management.ts';
import { matchName, matchNamespace } from '../registry/object-metadata.ts';
import { createResourceCatalog, type ResourceCatalog } from '../registry/resource-catalog.ts';
import type { StageDefinition, StageJob, StageResult } from '../registry/stage-job.ts';
import type { StageResource } from '../registry/stage-resource.ts';
import { newObject } from '../registry/update.ts';
import { beginUpdate, completeUpdate, namesVersion, updateDecision } from '../registry/update-stages.ts';
import { viewObject } from '../registry/versioned-view.ts';
import type { Admitted, FieldManagement, SentBody, UpdateCall } from '../registry/write-contract.ts';
import { type BodyInput, decodeBody } from './body.ts';
import type { BodyDecoder } from './exchange.ts';
import { decodePatch, patchType } from './patch-document.ts';
import { applied, appliedAnew, patchedObject } from './patched-object.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Definitions whose resources are kept at hand. */
const KEPT_DEFINITIONS = 8;

/**
 * What does one stage; rejects with the ApiError that it throws. `resources`: every one that has no CustomResourceDefinition
 * in the store; `bodyDecoders`: by media type.
 */
export function createStageRunner({
  resources,
  bodyDecoders,
}: {
  readonly resources: readonly ResourceInfo[];
  readonly bodyDecoders: ReadonlyMap<string, BodyDecoder>;
}): (job: StageJob) => Promise<StageResult> {
  const catalog = createResourceCatalog(resources);
  const defined = new Map<string, ResourceCatalog>();
  const catalogOf = ({ definition, resource }: StageJob): ResourceCatalog => {
    const { group, version } = resource;
    if (definition === undefined || catalog.lookup(group, version, resource.resource)) return catalog;
    const key = `${definition.name} ${definition.revision} ${definition.currentFrom ?? ''}`;
    const known = defined.get(key) ?? createResourceCatalog(resourcesOf(definition));
    defined.delete(key);
    defined.set(key, known);
    const [oldest] = defined.keys();
    if (defined.size > KEPT_DEFINITIONS) defined.delete(oldest!);
    return known;
  };
  const last: LastObject = {};
  return async (job) => {
    const catalog = catalogOf(job);
    const warnings: string[] = [];
    const warn = (text: string): void => void warnings.push(text);
    const info = infoOf(catalog, job.resource);
    return { ...(await outcomeOf(job, { catalog, bodyDecoders, last, info, warn })), warnings };
  };
}

function resourcesOf({ bytes, currentFrom = 0 }: StageDefinition): readonly ResourceInfo[] {
  const crd = asCrd(parseStored(decoder.decode(bytes)) as UnstructuredObject);
  return customResourceInfos(crd, { unchangedSince: currentFrom }).served;
}

/** The stored object that was worked on last, parsed: an update is two stages, one right after the other as a rule. */
interface LastObject {
  key?: string;
  own?: { readonly old: Readonly<UnstructuredObject>; readonly current: Readonly<UnstructuredObject> };
}

/** One job with all that its stage needs at hand. */
interface Work<J extends StageJob> {
  readonly last: LastObject;
  readonly catalog: ResourceCatalog;
  readonly bodyDecoders: ReadonlyMap<string, BodyDecoder>;
  readonly job: J;
  readonly info: ResourceInfo;
  readonly warn: (text: string) => void;
}

type Outcome = Omit<StageResult, 'warnings'>;
type Stage<S extends StageJob['stage']> = Extract<StageJob, { readonly stage: S }>;

function outcomeOf(job: StageJob, work: Omit<Work<StageJob>, 'job'>): Outcome | Promise<Outcome> {
  switch (job.stage) {
    case 'decode': {
      const { dropStatus, sent } = job;
      const older = job.older && infoOf(work.catalog, job.older);
      const options = { info: work.info, older, dropStatus, fieldValidation: sent.fieldValidation };
      return { object: toJson(decodeBody(inputOf(sent, work), options)) };
    }
    case 'view':
      return { object: toJson(work.info.view!.fromStored(fromJson(job.object))) };
    case 'begin-create':
      return beginCreateJob({ ...work, job });
    case 'complete-create':
      return createdOutcome({ ...work, job }, fromJson(job.object), job.isRewritten);
    case 'begin-update':
      return beginUpdateJob({ ...work, job });
    case 'complete-update':
      return updatedOutcome({ ...work, job }, { ...job, object: fromJson(job.object) });
    default:
      return job satisfies never;
  }
}

function infoOf(catalog: ResourceCatalog, { group, version, resource, kind }: StageResource): ResourceInfo {
  const info = catalog.lookup(group, version, resource) ?? bodyKind({ group, version, kind });
  if (info === undefined) throw new Error(`no resource ${resource} in ${group}/${version}`);
  return info;
}

const inputOf = (sent: SentBody, { bodyDecoders, warn }: Pick<Work<StageJob>, 'bodyDecoders' | 'warn'>): BodyInput => ({
  request: { body: sent.bytes, headers: { 'content-type': sent.type } },
  server: { bodyDecoders },
  warn,
});

/** With the place that the object of the job is to have. */
const patchInputOf = (sent: SentBody, work: Work<Stage<'begin-create'> | Stage<'begin-update'>>) => ({
  ...inputOf(sent, work),
  namespace: work.job.namespace,
  info: { name: work.job.name },
});

/** The body of a PUT. */
function namedBody(
  input: ReturnType<typeof patchInputOf>,
  info: ResourceInfo,
  fieldValidation: SentBody['fieldValidation'],
): UnstructuredObject {
  const object = decodeBody(input, { info, fieldValidation, dropStatus: false });
  matchNamespace(object.metadata, input.namespace);
  matchName(object.metadata, input.info.name);
  return object;
}

const toJson = (object: unknown): Uint8Array => encoder.encode(JSON.stringify(object));
const fromJson = (bytes: Uint8Array): UnstructuredObject => parseStored(decoder.decode(bytes)) as UnstructuredObject;

/** The version of a resource as its objects of other versions of this server know it. */
function servicesOf({ catalog, job }: Pick<Work<StageJob>, 'catalog' | 'job'>) {
  const served = new Set(job.served);
  const serves = (group: string, version: string): boolean =>
    served.has(group === '' ? version : `${group}/${version}`);
  const fields: FieldManagement = createFieldManagement({ lookup: catalog.lookup, serves });
  return { fields, clock: { now: () => job.now } };
}

async function beginCreateJob(work: Work<Stage<'begin-create'>>): Promise<Outcome> {
  const { job, info, warn } = work;
  const services = servicesOf(work);
  const tracked = job.sent.verb === 'patch';
  const wanted = await newOf(work, services);
  const { object, isVersioned } = await beginCreate(services, { ...job, info, warn, tracked }, wanted);
  if (!job.isWhole || !object.metadata.name) return { object: toJson(object), isVersioned };
  return { ...(await createdOutcome(work, object, false)), isVersioned };
}

/** The new object that a request wants. */
function newOf(
  work: Work<Stage<'begin-create'>>,
  { fields }: ReturnType<typeof servicesOf>,
): UnstructuredObject | Promise<UnstructuredObject> {
  const { job, info } = work;
  const { sent } = job;
  const { fieldValidation, force, verb } = sent;
  const input = patchInputOf(sent, work);
  switch (verb) {
    case 'create':
      return decodeBody(input, { info, fieldValidation, dropStatus: dropsStatus(info) });
    case 'update':
      return newObject(info, namedBody(input, info, fieldValidation));
    case 'patch': {
      const patch = decodePatch('apply', sent.bytes, info);
      return appliedAnew(input, { ...job, info, patch, fields, options: { fieldValidation, force } });
    }
    default:
      return verb satisfies never;
  }
}

function createdOutcome(
  { job, info, warn }: Work<Stage<'begin-create'> | Stage<'complete-create'>>,
  object: UnstructuredObject,
  isRewritten: boolean,
): Promise<Outcome> {
  completeCreate(job.now, { ...job, info, warn }, { object, attempt: 1, isRewritten });
  return completedOutcome(info, object, () => storeDecision(info, object));
}

async function beginUpdateJob(work: Work<Stage<'begin-update'>>): Promise<Outcome> {
  const { job, info, warn } = work;
  const { old } = currentOf(work);
  const services = servicesOf(work);
  const { next, ...more } = changeOf(work, services);
  const begun = await beginUpdate(services, { ...job, info, warn, ...more }, { old, next });
  const { object, errors, pinned } = begun;
  if (!job.isWhole) return { object: toJson(object), errors, pinned };
  const admitted = { errors, owners: undefined, isRewritten: false, isSameGeneration: false };
  return { ...(await updatedOutcome(work, { ...admitted, object })), pinned };
}

type Change = Pick<UpdateCall, 'next'> & { readonly pinned?: boolean };

/** What a request makes of the current object. */
function changeOf(work: Work<Stage<'begin-update'>>, { fields }: ReturnType<typeof servicesOf>): Change {
  const { job, info } = work;
  const { wanted } = job;
  if (wanted instanceof Uint8Array) return { next: () => fromJson(wanted) };
  const { fieldValidation, force, verb } = wanted;
  const input = patchInputOf(wanted, work);
  if (verb !== 'patch') {
    const object = namedBody(input, info, fieldValidation);
    return { next: () => object, pinned: namesVersion(object.metadata.resourceVersion) };
  }
  const patch = decodePatch(patchType(wanted.type)!, wanted.bytes, info);
  const options = { fieldValidation, force };
  if (patch.type !== 'apply') return { next: (current) => patchedObject(input, { info, current, patch, options }) };
  return { next: (live) => applied(input, { ...job, info, patch, options, live, fields }) };
}

function updatedOutcome(
  work: Work<Stage<'begin-update'> | Stage<'complete-update'>>,
  admitted: Admitted & { readonly object: UnstructuredObject },
): Promise<Outcome> {
  const { job, info, warn } = work;
  const { old, current } = currentOf(work);
  const facts = { ...job, info, warn, pinned: false };
  const object = completeUpdate(job.now, facts, { ...admitted, old });
  return completedOutcome(info, object, () => updateDecision(info, { object, old, current }));
}

function currentOf({ job, info, last }: Work<Stage<'begin-update'> | Stage<'complete-update'>>) {
  const { current, namespace, name, resource, definition } = job;
  const { revision, currentFrom } = definition ?? {};
  const key = JSON.stringify([resource, revision, currentFrom, namespace, name, current.revision]);
  if (last.key !== key || last.own === undefined) {
    const stored = ownObject({ prefix: '', namespace, name, key: name }, current);
    last.own = { old: viewObject(info, stored), current: stored.object };
    last.key = key;
  }
  return last.own;
}

/** The object as admission sees it, and as it is stored: mostly the same, and then written once. */
async function completedOutcome(
  info: ResourceInfo,
  object: UnstructuredObject,
  decide: () => Decision | Promise<Decision>,
): Promise<Outcome> {
  const isKept = info.strategy.custom || !mayBecomeNull(info.schema);
  const shown = isKept ? undefined : toJson(object);
  const decision = await decide();
  if (decision.type !== 'put') return { object: shown ?? toJson(object), decision: decision.type };
  const around = writeAroundVersion(decision.object);
  const whole = withVersion(around, decision.object.metadata.resourceVersion);
  const isShown = isKept && decision.object === object;
  const form = { ...around, whole: isShown ? undefined : whole };
  return { object: isShown ? whole : (shown ?? toJson(object)), decision: 'put', form };
}
