/**
 * The versions of a kind as field ownership needs them: in the middle of a computation that waits for nobody. Where a
 * webhook converts, the computation is broken off at the first conversion it lacks, the webhook is asked, and the
 * computation is done again with the answer; it is pure, so doing it again gives the same up to there.
 */
import type { Versions } from '@coracle/apimachinery/apply/ownership';
import { apiVersionOf, parseApiVersion } from '@coracle/apimachinery/meta/gvk';
import type { JsonObject } from '@coracle/apimachinery/meta/own-property';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import type { ResourceSource } from './resource-catalog.ts';

type Lookup = Pick<ResourceSource, 'lookup'>;

/**
 * Runs `compute` with the versions of a kind. A promise only where a webhook had to be asked; it rejects with ApiError
 * 500 when that fails. `compute` must be pure: it is run once more for each time the webhook is asked.
 */
export function withVersions<T>(
  resources: Lookup,
  info: ResourceInfo,
  compute: (versions: Versions) => T,
): T | Promise<T> {
  if (info.remote === undefined) return compute(localVersions(resources, info));
  return withAnswers(resources, info, { compute, answers: new Map() });
}

/** The versions of a kind that no webhook converts. */
function localVersions(resources: Lookup, info: ResourceInfo): Versions {
  return {
    schemaOf: (apiVersion) => otherVersion(resources, info, apiVersion)?.schema,
    convert(objects, { from, to }) {
      const [source, target] = [from, to].map((apiVersion) => versionOf(resources, info, apiVersion) ?? info);
      return objects.map((object) => {
        // An object that is about to be created has nothing to be shown yet.
        if (Object.keys(object).length === 0) return object;
        const stored = source!.view ? source!.view.toStored(object) : object;
        return target!.view ? target!.view.fromStored(stored) : stored;
      });
    },
  };
}

function versionOf(resources: Lookup, info: ResourceInfo, apiVersion: string): ResourceInfo | undefined {
  const { group, version } = parseApiVersion(apiVersion);
  return resources.lookup(group, version, info.resource);
}

/** Another version that shows objects in its own way. */
function otherVersion(resources: Lookup, info: ResourceInfo, apiVersion: string): ResourceInfo | undefined {
  if (apiVersion === apiVersionOf(info)) return undefined;
  const other = versionOf(resources, info, apiVersion);
  return other && other.view === info.view && other.schema === info.schema ? undefined : other;
}

interface Asking<T> {
  readonly compute: (versions: Versions) => T;
  /** What the webhook said, by `questionOf`: of one write, so bounded by its managers and versions. */
  readonly answers: Map<string, JsonObject[]>;
}

function withAnswers<T>(resources: Lookup, info: ResourceInfo, asking: Asking<T>): T | Promise<T> {
  const { compute, answers } = asking;
  const versions: Versions = {
    schemaOf: (apiVersion) => otherVersion(resources, info, apiVersion)?.schema,
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
