/** Validation of what a container mounts, and of the devices it is given (core/validation, ValidateVolumeMounts). */
import type { FieldError } from '@coracle/apimachinery/meta/status';
import {
  isObject,
  isTrueAt,
  type JsonObject,
  objectsAt,
  textAt,
  valueAt,
} from '@coracle/apimachinery/types/read-value';
import {
  absent,
  forbidden,
  invalid,
  required,
  unsupported,
  validateEach,
} from '@coracle/apimachinery/validation/field-errors';
import { backstepErrors, descendingErrors } from './volume-paths.ts';

const PROPAGATIONS = ['Bidirectional', 'HostToContainer', 'None'];
const RECURSIONS = ['Disabled', 'Enabled', 'IfPossible'];

/** Validates `volumeMounts` and `volumeDevices`; `volumes` are those of the Pod, by name. */
export function validateMounts(
  errors: FieldError[],
  container: JsonObject,
  { path, volumes }: { readonly path: string; readonly volumes: ReadonlyMap<string, JsonObject> },
): void {
  const mounts = objectsAt(container, 'volumeMounts');
  const devices = objectsAt(container, 'volumeDevices');
  const valuesOf = (list: readonly JsonObject[], field: string): ReadonlySet<string> =>
    new Set(list.map((one) => textAt(one, field)));
  const mounted = { names: valuesOf(mounts, 'name'), paths: valuesOf(mounts, 'mountPath') };
  const given = { names: valuesOf(devices, 'name'), paths: valuesOf(devices, 'devicePath') };
  const seen = new Set<string>();
  validateEach(errors, mounts, (mount, i) => {
    const list = `${path}.volumeMounts`;
    const at = `${list}[${i}]`;
    const [name, place] = [textAt(mount, 'name'), textAt(mount, 'mountPath')];
    const found: FieldError[] = [];
    if (name === '') found.push(required(`${at}.name`));
    if (!volumes.has(name)) found.push(absent(`${at}.name`, name));
    if (place === '') found.push(required(`${at}.mountPath`));
    if (seen.has(place)) found.push(invalid(`${at}.mountPath`, place, 'must be unique'));
    seen.add(place);
    if (given.names.has(name)) found.push(invalid(`${at}.name`, name, 'must not already exist in volumeDevices'));
    if (given.paths.has(place)) {
      found.push(invalid(`${at}.mountPath`, place, 'must not already exist as a path in volumeDevices'));
    }
    found.push(...subPathErrors(mount, { at, list, isImage: isObject(valueAt(volumes.get(name), 'image')) }));
    // Upstream leaves the index out.
    found.push(...propagationErrors(mount, container, `${list}.mountPropagation`));
    found.push(...recursionErrors(mount, `${list}.recursiveReadOnly`));
    return found;
  });
  const names = new Set<string>();
  const paths = new Set<string>();
  validateEach(errors, devices, (device, i) => {
    const at = `${path}.volumeDevices[${i}]`;
    const [name, place] = [textAt(device, 'name'), textAt(device, 'devicePath')];
    const found: FieldError[] = [];
    if (name === '') found.push(required(`${at}.name`));
    if (names.has(name)) found.push(invalid(`${at}.name`, name, 'must be unique'));
    const volume = volumes.get(name);
    if (volume === undefined) found.push(absent(`${at}.name`, name));
    else if (!isBlock(volume)) {
      const detail = 'can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode';
      found.push(invalid(`${at}.name`, name, detail));
    }
    if (place === '') found.push(required(`${at}.devicePath`));
    if (paths.has(place)) found.push(invalid(`${at}.devicePath`, place, 'must be unique'));
    if (backstepErrors(place, '').length === 0) paths.add(place);
    else found.push(invalid(`${at}.devicePath`, place, "can not contain backsteps ('..')"));
    if (mounted.names.has(name)) found.push(invalid(`${at}.name`, name, 'must not already exist in volumeMounts'));
    if (mounted.paths.has(place)) {
      found.push(invalid(`${at}.devicePath`, place, 'must not already exist as a path in volumeMounts'));
    }
    if (name !== '') names.add(name);
    return found;
  });
}

const isBlock = (volume: JsonObject): boolean =>
  ['persistentVolumeClaim', 'ephemeral'].some((source) => isObject(valueAt(volume, source)));

function subPathErrors(
  mount: JsonObject,
  { at, list, isImage }: { readonly at: string; readonly list: string; readonly isImage: boolean },
): FieldError[] {
  const errors: FieldError[] = [];
  const fields = ['subPath', 'subPathExpr'].filter((field) => textAt(mount, field) !== '');
  if (isImage) {
    for (const field of fields) {
      errors.push(invalid(`${at}.${field}`, textAt(mount, field), 'not allowed in image volume sources'));
    }
  }
  for (const field of fields) {
    const below = textAt(mount, field);
    if (field === 'subPathExpr' && fields.length > 1) {
      errors.push(invalid(`${at}.subPathExpr`, below, 'subPathExpr and subPath are mutually exclusive'));
    }
    errors.push(...descendingErrors(below, `${list}.${field}`));
  }
  return errors;
}

function propagationErrors(mount: JsonObject, container: JsonObject, at: string): FieldError[] {
  const propagation = valueAt(mount, 'mountPropagation');
  if (typeof propagation !== 'string') return [];
  if (!PROPAGATIONS.includes(propagation)) return [unsupported(at, propagation, PROPAGATIONS)];
  if (propagation !== 'Bidirectional' || isTrueAt(container, 'securityContext', 'privileged')) return [];
  return [forbidden(at, 'Bidirectional mount propagation is available only to privileged containers')];
}

function recursionErrors(mount: JsonObject, at: string): FieldError[] {
  const recursion = valueAt(mount, 'recursiveReadOnly');
  if (typeof recursion !== 'string' || recursion === 'Disabled') return [];
  if (!RECURSIONS.includes(recursion)) return [unsupported(at, recursion, RECURSIONS)];
  const errors: FieldError[] = [];
  if (!isTrueAt(mount, 'readOnly')) errors.push(forbidden(at, 'may only be specified when readOnly is true'));
  const propagation = valueAt(mount, 'mountPropagation') ?? 'None';
  if (propagation !== 'None') {
    errors.push(forbidden(at, 'may only be specified when mountPropagation is None or not specified'));
  }
  return errors;
}
