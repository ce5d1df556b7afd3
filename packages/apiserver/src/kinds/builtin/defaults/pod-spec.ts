/** Defaults of a PodSpec, wherever one stands: in a Pod or in a workload's template (core/v1 defaults.go). */
import { setPodLevelDefaults } from './pod-level.ts';
import { ensureObject, type MutableObject, member, members, preset } from './preset.ts';

/** 0644. */
const FILE_MODE = 420;
const TOKEN_SECONDS = 3600;
export function setPodSpecDefaults(spec: MutableObject): void {
  preset(spec, {
    restartPolicy: 'Always',
    dnsPolicy: 'ClusterFirst',
    schedulerName: 'default-scheduler',
    terminationGracePeriodSeconds: 30,
    securityContext: {},
  });
  // Upstream took any number once: a negative one is no reason to refuse, and no time to wait.
  if (Number(spec['terminationGracePeriodSeconds']) < 0) spec['terminationGracePeriodSeconds'] = 1;
  mirrorServiceAccount(spec);
  for (const volume of members(spec, 'volumes')) setVolumeDefaults(volume);
  for (const list of ['initContainers', 'containers', 'ephemeralContainers']) {
    for (const container of members(spec, list)) setContainerDefaults(container);
  }
}

/** `enableServiceLinks`, requests and host ports are defaulted in Pods only, not in templates. */
export function setPodOnlyDefaults(spec: MutableObject): void {
  preset(spec, { enableServiceLinks: true });
  for (const list of ['initContainers', 'containers']) {
    for (const container of members(spec, list)) {
      copyLimitsToRequests(container);
      if (spec['hostNetwork'] === true) bindHostPorts(container);
    }
  }
  setPodLevelDefaults(spec);
}

/** `serviceAccount` is the old name of `serviceAccountName`; both are always shown. */
function mirrorServiceAccount(spec: MutableObject): void {
  const name = spec['serviceAccountName'] || spec['serviceAccount'];
  if (typeof name !== 'string' || name === '') return;
  spec['serviceAccountName'] = name;
  spec['serviceAccount'] = name;
}

/** A request that is not given equals its limit. */
function copyLimitsToRequests(container: MutableObject): void {
  const resources = member(container, 'resources');
  const limits = member(resources, 'limits');
  if (resources === undefined || limits === undefined) return;
  const requests = Object.keys(limits).length === 0 ? undefined : ensureObject(resources, 'requests');
  if (requests !== undefined) preset(requests, limits);
}

function bindHostPorts(container: MutableObject): void {
  for (const port of members(container, 'ports')) preset(port, { hostPort: port['containerPort'] });
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

function setContainerDefaults(container: MutableObject): void {
  preset(container, {
    imagePullPolicy: pullPolicy(container['image']),
    terminationMessagePath: '/dev/termination-log',
    terminationMessagePolicy: 'File',
    resources: {},
  });
  for (const port of members(container, 'ports')) preset(port, { protocol: 'TCP' });
  for (const env of members(container, 'env')) presetFieldRef(member(env, 'valueFrom'));
  for (const probe of ['livenessProbe', 'readinessProbe', 'startupProbe']) setProbeDefaults(member(container, probe));
  const lifecycle = member(container, 'lifecycle');
  for (const hook of ['postStart', 'preStop']) setHttpGetDefaults(member(member(lifecycle, hook), 'httpGet'));
}

function presetFieldRef(holder: MutableObject | undefined): void {
  const fieldRef = member(holder, 'fieldRef');
  if (fieldRef !== undefined) preset(fieldRef, { apiVersion: 'v1' });
  const resourceRef = member(holder, 'resourceFieldRef');
  if (resourceRef !== undefined) preset(resourceRef, { divisor: '0' });
  const fileRef = member(holder, 'fileKeyRef');
  if (fileRef !== undefined) preset(fileRef, { optional: false });
}

function setProbeDefaults(probe: MutableObject | undefined): void {
  if (probe === undefined) return;
  preset(probe, { timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3 });
  setHttpGetDefaults(member(probe, 'httpGet'));
  const grpc = member(probe, 'grpc');
  if (grpc !== undefined) preset(grpc, { service: '' });
}

function setHttpGetDefaults(httpGet: MutableObject | undefined): void {
  if (httpGet !== undefined) preset(httpGet, { path: '/', scheme: 'HTTP' });
}

const SOURCES: Readonly<Record<string, Record<string, unknown>>> = {
  hostPath: { type: '' },
  iscsi: { iscsiInterface: 'default' },
  rbd: { pool: 'rbd', user: 'admin', keyring: '/etc/ceph/keyring' },
  azureDisk: { cachingMode: 'ReadWrite', kind: 'Shared', fsType: 'ext4', readOnly: false },
  scaleIO: { storageMode: 'ThinProvisioned', fsType: 'xfs' },
};

/** Defaults of the sources that volumes of Pods and PersistentVolumes share. */
export function setSourceDefaults(volume: MutableObject): void {
  for (const [name, defaults] of Object.entries(SOURCES)) {
    const source = member(volume, name);
    if (source !== undefined) preset(source, defaults);
  }
}

function setVolumeDefaults(volume: MutableObject): void {
  // A volume without a source is an emptyDir.
  const hasSource = Object.entries(volume).some(
    ([key, value]) => key !== 'name' && value !== null && value !== undefined,
  );
  if (!hasSource) volume['emptyDir'] = {};
  for (const source of ['secret', 'configMap', 'downwardAPI', 'projected']) {
    const value = member(volume, source);
    if (value !== undefined) preset(value, { defaultMode: FILE_MODE });
  }
  setSourceDefaults(volume);
  const image = member(volume, 'image');
  if (image !== undefined) preset(image, { pullPolicy: pullPolicy(image['reference']) });
  for (const item of members(member(volume, 'downwardAPI'), 'items')) presetFieldRef(item);
  for (const source of members(member(volume, 'projected'), 'sources')) {
    const token = member(source, 'serviceAccountToken');
    if (token !== undefined) preset(token, { expirationSeconds: TOKEN_SECONDS });
    for (const item of members(member(source, 'downwardAPI'), 'items')) presetFieldRef(item);
  }
  const claim = member(member(member(volume, 'ephemeral'), 'volumeClaimTemplate'), 'spec');
  if (claim !== undefined) preset(claim, { volumeMode: 'Filesystem' });
}
