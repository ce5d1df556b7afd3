/**
 * Configuration files of group apiserver.config.k8s.io: strictly decoded (an unknown field is an error), and reported about
 * in the words of apimachinery's field errors.
 */
import { goQuote } from '@coracle/apimachinery/meta/go-text';
import { isJsonObject, type JsonObject } from '@coracle/apimachinery/meta/own-property';
import { type FieldError, fieldErrorBody } from '@coracle/apimachinery/meta/status';
import { decodeErrors } from '@coracle/apimachinery/schema/decode-errors';
import { parseYaml } from '@coracle/apimachinery/schema/parse-json';
import { pruneUnknown } from '@coracle/apimachinery/schema/prune';
import type { Schema } from '@coracle/apimachinery/schema/schema';
import { aggregated } from './union.ts';

const GROUP = 'apiserver.config.k8s.io';
const VERSIONS = ['v1alpha1', 'v1beta1', 'v1'];
/** Of the group, those that are files of a kube-apiserver. */
const KINDS = [
  'AdmissionConfiguration',
  'AuthenticationConfiguration',
  'AuthorizationConfiguration',
  'EgressSelectorConfiguration',
  'EncryptionConfiguration',
  'TracingConfiguration',
];
/** The fields of a document, by name. */
export type Fields = NonNullable<Schema['properties']>;

const SCHEME = 'k8s.io/apiserver/pkg/apis/apiserver/load/load.go:32';

/** The document of a file, all of whose fields are known and of their types. Throws an Error of upstream's words. */
export function decodeConfiguration(text: string, kind: string, properties: Fields): JsonObject {
  const { value, duplicates } = parseYaml(text);
  const document: unknown = value;
  if (!isJsonObject(document)) throw new Error(`couldn't get version/kind; json parse error: it is not an object`);
  const { apiVersion, kind: found } = document;
  if (typeof found !== 'string' || found === '') throw new Error(`Object 'Kind' is missing in '${summary(document)}'`);
  if (typeof apiVersion !== 'string' || apiVersion === '')
    throw new Error(`Object 'apiVersion' is missing in '${summary(document)}'`);
  const [group = '', version = ''] = apiVersion.split('/');
  const isOurs = group === GROUP && VERSIONS.includes(version);
  if (isOurs && found !== kind && KINDS.includes(found)) throw new Error(`expected ${kind}, got *apiserver.${found}`);
  if (!isOurs || found !== kind)
    throw new Error(
      `no kind ${goQuote(found)} is registered for version ${goQuote(apiVersion)} in scheme ${goQuote(SCHEME)}`,
    );
  const schema: Schema = { type: 'object', properties: { apiVersion: TEXT, kind: TEXT, ...properties } };
  const undecodable = decodeErrors(schema, document, { group, version, kind });
  if (undecodable !== undefined) throw new Error(undecodable);
  const unknown = pruneUnknown(schema, document, { custom: false }).map((path) => `unknown field ${goQuote(path)}`);
  const problems = [...duplicates(), ...unknown];
  if (problems.length > 0) throw new Error(`strict decoding error: ${problems.join(', ')}`);
  return document;
}

const TEXT: Schema = { type: 'string' };
const SUMMARY = 200;
const summary = (document: JsonObject): string => JSON.stringify(document).slice(0, SUMMARY);

/** All of them in one line; undefined when there is none. */
export const reportedFieldErrors = (errors: readonly FieldError[]): string | undefined =>
  aggregated(errors.map((error) => `${error.field}: ${fieldErrorBody(error)}`));
