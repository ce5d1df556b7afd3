/** Defaults of a PodSpec, wherever one stands: in a Pod or in a workload's template (core/v1 defaults.go). */
import { presetsOf } from './kind-defaults.ts';
import { setPodLevelDefaults } from './pod-level.ts';
import { ensureObject, type MutableObject, member, members, preset } from './preset.ts';

const setPresets = presetsOf('podSpec')!;

export function setPodSpecDefaults(spec: MutableObject): void {
  for (const list of ['initContainers', 'containers', 'ephemeralContainers']) {
    for (const container of members(spec, list)) preset(container, { imagePullPolicy: pullPolicy(container['image']) });
  }
  for (const volume of members(spec, 'volumes')) {
    // A volume without a source is an emptyDir.
    if (Object.entries(volume).every(([key, value]) => key === 'name' || value == null)) volume['emptyDir'] = {};
    const image = member(volume, 'image');
    if (image !== undefined) preset(image, { pullPolicy: pullPolicy(image['reference']) });
  }
  setPresets(spec);
  // Upstream took any number once: a negative one is no reason to refuse, and no time to wait.
  if (Number(spec['terminationGracePeriodSeconds']) < 0) spec['terminationGracePeriodSeconds'] = 1;
  // `serviceAccount` is the old name of `serviceAccountName`; both are always shown.
  const account = spec['serviceAccountName'] || spec['serviceAccount'];
  if (typeof account !== 'string' || account === '') return;
  spec['serviceAccountName'] = account;
  spec['serviceAccount'] = account;
}

/** `enableServiceLinks`, requests and host ports are defaulted in Pods only, not in templates. */
export function setPodOnlyDefaults(spec: MutableObject): void {
  preset(spec, { enableServiceLinks: true });
  for (const list of ['initContainers', 'containers']) {
    for (const container of members(spec, list)) {
      copyLimitsToRequests(container);
      if (spec['hostNetwork'] !== true) continue;
      for (const port of members(container, 'ports')) preset(port, { hostPort: port['containerPort'] });
    }
  }
  setPodLevelDefaults(spec);
}

/** A request that is not given equals its limit. */
function copyLimitsToRequests(container: MutableObject): void {
  const resources = member(container, 'resources');
  const limits = member(resources, 'limits');
  if (resources === undefined || limits === undefined) return;
  const requests = Object.keys(limits).length === 0 ? undefined : ensureObject(resources, 'requests');
  if (requests !== undefined) preset(requests, limits);
}

/** The tag of an image reference; 'latest' without tag and digest, '' with a digest alone. */
export function imageTag(image: string): string {
  const at = image.indexOf('@');
  const name = at < 0 ? image : image.slice(0, at);
  const colon = name.indexOf(':', name.lastIndexOf('/') + 1);
  return colon >= 0 ? name.slice(colon + 1) : at < 0 ? 'latest' : '';
}

const pullPolicy = (image: unknown): string =>
  imageTag(typeof image === 'string' ? image : '') === 'latest' ? 'Always' : 'IfNotPresent';
