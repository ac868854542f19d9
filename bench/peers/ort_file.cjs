// SPDX-License-Identifier: Apache-2.0
// ONNX Runtime's side of files.py: runs one ONNX file on inputs that are made here.
//
//   node ort_file.cjs MODULES FILE.onnx FOLDER
//
// writes FOLDER/in_0.npy ..., FOLDER/out_0.npy ... and FOLDER/run.json with names and types, or why
// it did not run.  Open dimensions get a number, the same wherever the same name stands; where the
// network does not run with it the next one is tried.  Values come from a fixed generator.
'use strict';
const fs = require('fs');
const path = require('path');

const [modules, file, folder] = process.argv.slice(2);
const ort = require(path.join(modules, 'onnxruntime-node'));

const SIZES = [2, 1, 3, 4, 8, 16, 32, 64, 5, 7, 10, 12, 100, 128, 224]; // for open dimensions
const LIMIT = 1 << 26; // elements of an input

const KINDS = {
  float32: [Float32Array, '<f4'], float64: [Float64Array, '<f8'], float16: [Uint16Array, '<f2'],
  int8: [Int8Array, '|i1'], uint8: [Uint8Array, '|u1'], int16: [Int16Array, '<i2'],
  uint16: [Uint16Array, '<u2'], int32: [Int32Array, '<i4'], uint32: [Uint32Array, '<u4'],
  int64: [BigInt64Array, '<i8'], uint64: [BigUint64Array, '<u8'], bool: [Uint8Array, '|b1'],
};

let state = 1;
function uniform() { // [0, 1)
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return state / 4294967296;
}

// Round to nearest of a number whose size is that of a normal half.
function half(x) {
  const bits = new Uint32Array(new Float32Array([x]).buffer)[0];
  const sign = (bits >>> 16) & 0x8000, exponent = ((bits >>> 23) & 255) - 112;
  if (exponent <= 0) return sign;
  return sign | (((exponent << 10) | ((bits >>> 13) & 1023)) + ((bits >>> 12) & 1));
}

// Floats in [-1, 1); whole numbers are 0 or 1, so that they may be indices; bytes are any.
function value(type) {
  const u = uniform();
  switch (type) {
    case 'float32': case 'float64': return u * 2 - 1;
    case 'float16': return half(u * 2 - 1);
    case 'int8': return Math.floor(u * 256) - 128;
    case 'uint8': return Math.floor(u * 256);
    case 'int64': case 'uint64': return u < 0.5 ? 0n : 1n;
    default: return u < 0.5 ? 0 : 1;
  }
}

function makeInput(meta, size) {
  if (!meta.isTensor) throw new Error(`input ${meta.name} is no tensor`);
  const kind = KINDS[meta.type];
  if (!kind) throw new Error(`input ${meta.name} is ${meta.type}`);
  const dims = meta.shape.map((d) => (typeof d === 'number' && d >= 0 ? d : size));
  const count = dims.reduce((a, b) => a * b, 1);
  if (count > LIMIT) throw new Error(`input ${meta.name} would have ${count} elements`);
  const data = new kind[0](count);
  for (let i = 0; i < count; i++) data[i] = value(meta.type);
  return new ort.Tensor(meta.type, data, dims);
}

function writeNpy(name, tensor) {
  const kind = KINDS[tensor.type];
  if (!kind) throw new Error(`a tensor of ${tensor.type}`);
  const shape = tensor.dims.length === 1 ? `${tensor.dims[0]},` : tensor.dims.join(', ');
  const text = `{'descr': '${kind[1]}', 'fortran_order': False, 'shape': (${shape}), }`;
  const head = text.padEnd(Math.ceil((text.length + 11) / 64) * 64 - 11) + '\n';
  const prefix = Buffer.from([0x93, 78, 85, 77, 80, 89, 1, 0, head.length & 255, head.length >> 8]);
  const d = tensor.data;
  const bytes = Buffer.from(d.buffer, d.byteOffset, d.byteLength);
  fs.writeFileSync(path.join(folder, name), Buffer.concat([prefix, Buffer.from(head), bytes]));
}

async function attempt(session, size) {
  state = 1;
  const feeds = {};
  for (const meta of session.inputMetadata) feeds[meta.name] = makeInput(meta, size);
  const out = await session.run(feeds);
  session.inputNames.forEach((n, i) => writeNpy(`in_${i}.npy`, feeds[n]));
  session.outputNames.forEach((n, i) => {
    if (!out[n].dims) throw new Error(`output ${n} is no tensor`);
    writeNpy(`out_${i}.npy`, out[n]);
  });
  return { inputs: session.inputNames, outputs: session.outputNames, size };
}

async function main() {
  const session = await ort.InferenceSession.create(file, {
    graphOptimizationLevel: 'disabled', intraOpNumThreads: 1, interOpNumThreads: 1,
    logSeverityLevel: 4,
  });
  const open = session.inputMetadata.some((m) => (m.shape || []).some((d) => !(d >= 0)));
  let first;
  for (const size of open ? SIZES : [0]) {
    try {
      return await attempt(session, size);
    } catch (e) {
      first = first || e;
    }
  }
  throw first;
}

main().then((r) => r, (e) => ({ error: String(e.message || e) })).then((r) => {
  fs.writeFileSync(path.join(folder, 'run.json'), JSON.stringify(r) + '\n');
  process.exit(0);
});
