/** Field ownership (server-side apply, KEP-555) as the registry's slot for it: `apimachinery/apply` with the kind's schema. */
import { type ApplyResult, applyObject } from '@coracle/apimachinery/apply/apply-object';
import { applyConflictError } from '@coracle/apimachinery/apply/conflict';
import type { Versions } from '@coracle/apimachinery/apply/ownership';
import { type TrackUpdateOptions, trackUpdate } from '@coracle/apimachinery/apply/track-update';
import { apiVersionOf, parseApiVersion } from '@coracle/apimachinery/meta/gvk';
import { formatTime, type ManagedFieldsEntry, type UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type { JsonObject } from '@coracle/apimachinery/meta/own-property';
import { dropMetadataNulls, dropNulls } from '@coracle/apimachinery/schema/defaults';
import { dropEmpty } from '@coracle/apimachinery/schema/drop-empty';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import { updateStrategyOf } from '@coracle/apimachinery/types/strategy';
import type { ResourceSource } from './resource-catalog.ts';
import type { FieldChange, FieldManagement } from './write-contract.ts';

/** Objects of definitions may lie as an older schema had them, and carry parts that nobody validates. */
function doubtOf({ info, live }: FieldChange): TrackUpdateOptions['doubt'] {
  if (!info.strategy.custom) return undefined;
  const since = info.view?.currentFrom;
  const written = Number(live?.metadata.resourceVersion ?? Number.POSITIVE_INFINITY);
  return { live: since !== undefined && written < since };
}

/** Builds the slot over the served resources: entries of versions no longer served are dropped. */
export function createFieldManagement(resources: Pick<ResourceSource, 'serves' | 'lookup'>): FieldManagement {
  const common = (change: FieldChange, versions: Versions) => {
    const { info } = change;
    return {
      schema: info.schema,
      live: change.live,
      manager: change.manager,
      apiVersion: apiVersionOf(info),
      subresource: change.subresource === '' ? undefined : change.subresource,
      now: formatTime(change.now),
      ignore: updateStrategyOf(info.strategy, change.subresource).resetFields,
      doubt: doubtOf(change),
      isServed(apiVersion: string): boolean {
        const { group, version } = parseApiVersion(apiVersion);
        if (group !== info.group) return resources.serves(group, version);
        return resources.lookup(group, version, info.resource) !== undefined;
      },
      versions,
    };
  };
  return {
    track(change, object) {
      const tracked = withVersions(resources, change.info, (versions) =>
        trackUpdate({ ...common(change, versions), updated: object }),
      );
      if (!(tracked instanceof Promise)) return setEntries(object, tracked);
      // As upstream has it (FieldManager.UpdateNoErrors): the write is worth more than the record of who made it.
      return tracked.then(
        (entries) => setEntries(object, entries),
        () => setEntries(object, undefined),
      );
    },
    apply(change, { config, force }) {
      const applied = withVersions(resources, change.info, (versions) =>
        applyObject({ ...common(change, versions), config, force }),
      );
      return applied instanceof Promise
        ? applied.then((result) => outcome(change.info, result))
        : outcome(change.info, applied);
    },
  };
}

function setEntries(object: UnstructuredObject, entries: ManagedFieldsEntry[] | undefined): void {
  if (entries) object.metadata.managedFields = entries;
  else delete object.metadata.managedFields;
}

function outcome(info: ResourceInfo, result: ApplyResult): UnstructuredObject {
  const { object, managedFields, conflicts } = result;
  if (conflicts.length > 0) throw applyConflictError(conflicts);
  if (info.strategy.custom) {
    // The rest of a custom object has no types: what is null there is given its default, or validated as null.
    dropMetadataNulls(info.schema, object);
  } else {
    // What was applied as null is owned and not there: the kind decides what a null of it means.
    dropNulls(info.schema, object, { custom: false });
    // So is an empty field that Go leaves out: before anybody asks whether the object has changed.
    dropEmpty(info.schema, object);
  }
  setEntries(object, managedFields);
  return object;
}

type Lookup = Pick<ResourceSource, 'lookup'>;

/**
 * Runs `compute` with the versions of a kind. It waits for nobody: where a webhook converts, it is broken off at the first
 * conversion it lacks, the webhook is asked, and it is run again with the answer; so it must be pure. A promise only then;
 * it rejects with ApiError 500 when the webhook fails.
 */
function withVersions<T>(resources: Lookup, info: ResourceInfo, compute: (versions: Versions) => T): T | Promise<T> {
  if (info.remote !== undefined) return withAnswers(resources, info, { compute, answers: new Map() });
  return compute({
    schemaOf: schemaOf(resources, info),
    convert(objects, { from, to }) {
      const [source, target] = [from, to].map((apiVersion) => versionOf(resources, info, apiVersion) ?? info);
      return objects.map((object) => {
        // An object that is about to be created has nothing to be shown yet.
        if (Object.keys(object).length === 0) return object;
        const stored = source!.view ? source!.view.toStored(object) : object;
        return target!.view ? target!.view.fromStored(stored) : stored;
      });
    },
  });
}

function versionOf(resources: Lookup, info: ResourceInfo, apiVersion: string): ResourceInfo | undefined {
  const { group, version } = parseApiVersion(apiVersion);
  return resources.lookup(group, version, info.resource);
}

/** Of another version, where that shows objects in its own way. */
const schemaOf =
  (resources: Lookup, info: ResourceInfo): Versions['schemaOf'] =>
  (apiVersion) => {
    const other = apiVersion === apiVersionOf(info) ? undefined : versionOf(resources, info, apiVersion);
    return other && other.view === info.view && other.schema === info.schema ? undefined : other?.schema;
  };

interface Asking<T> {
  readonly compute: (versions: Versions) => T;
  /** What the webhook said, by `questionOf`: of one write, so bounded by its managers and versions. */
  readonly answers: Map<string, JsonObject[]>;
}

function withAnswers<T>(resources: Lookup, info: ResourceInfo, asking: Asking<T>): T | Promise<T> {
  const { compute, answers } = asking;
  const versions: Versions = {
    schemaOf: schemaOf(resources, info),
    convert(objects, { to }) {
      const filled = objects.filter((object) => Object.keys(object).length > 0);
      const converted = answers.get(questionOf(filled, to));
      if (converted === undefined) throw new UnansweredConversion(filled, to);
      let next = 0;
      return objects.map((object) => (Object.keys(object).length > 0 ? converted[next++]! : object));
    },
  };
  try {
    return compute(versions);
  } catch (error) {
    if (!(error instanceof UnansweredConversion)) throw error;
    const { objects, to } = error;
    // Only versions whose `schemaOf` was just found are converted to, and all versions of a kind have a `remote`.
    const { remote } = versionOf(resources, info, to) ?? info;
    return remote!.fromOther(objects).then((converted) => {
      answers.set(questionOf(objects, to), converted as JsonObject[]);
      return withAnswers(resources, info, asking);
    });
  }
}

const questionOf = (objects: readonly JsonObject[], to: string): string => `${to} ${JSON.stringify(objects)}`;

class UnansweredConversion extends Error {
  readonly objects: readonly JsonObject[];
  readonly to: string;

  constructor(objects: readonly JsonObject[], to: string) {
    super(`objects must be converted to ${to}`);
    this.name = 'UnansweredConversion';
    this.objects = objects;
    this.to = to;
  }
}
