// Runs a Python file with the Python of Pyodide, which is newer than the one the tests run with.
// usage: node newest_python.mjs SCRIPT NAME=FOLDER ...  (each folder is mounted at /NAME)
import { readFileSync } from 'node:fs'
import { loadPyodide } from 'pyodide'

const [script, ...folders] = process.argv.slice(2)
const python = await loadPyodide()
for (const [name, folder] of folders.map((one) => one.split('='))) {
  python.mountNodeFS(`/${name}`, folder)
}
python.runPython(readFileSync(script, 'utf8'))
