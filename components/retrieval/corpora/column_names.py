"""Names by which columns of texts are recognised, in formats in use and in a few languages.

A name is compared in Unicode's composed form, without case and the spaces around it.
"""

from __future__ import annotations

import unicodedata

QUESTIONS: tuple[str, ...] = ("query", "question", "frage", "anfrage", "suchanfrage", "requête", "requete")
QUESTIONS += ("pregunta", "consulta", "pergunta", "domanda", "vraag", "pytanie", "soru")
QUESTIONS += ("вопрос", "питання", "سؤال", "प्रश्न", "सवाल", "問題", "问题")
QUESTIONS += ("質問", "질문")
ANSWERS: tuple[str, ...] = ("answer", "response", "reply", "antwort", "réponse", "reponse", "respuesta")
ANSWERS += ("resposta", "risposta", "antwoord", "odpowiedź", "odpowiedz", "cevap", "ответ")
ANSWERS += ("відповідь", "جواب", "إجابة", "उत्तर", "जवाब", "答案", "回答")
ANSWERS += ("답변",)
TITLES: tuple[str, ...] = ("title", "subject", "titel", "betreff", "titre", "título", "titulo")
TITLES += ("titolo", "tytuł", "заголовок", "शीर्षक", "标题", "標題", "タイトル")
TITLES += ("제목",)
BODIES: tuple[str, ...] = ("body", "context", "abstract", "inhalt", "contenu", "contenido", "conteúdo")
BODIES += ("contenuto", "内容", "本文", "내용")
TEXTS: tuple[str, ...] = ("satz", "phrase", "frase", "texte", "texto", "testo", "tekst")
TEXTS += ("текст", "نص", "वाक्य", "पाठ", "文本", "句子", "文")
TEXTS += ("텍스트", "문장")


def plain(name: str) -> str:
    """A name as it is compared."""
    return unicodedata.normalize("NFC", name).casefold().strip()


def is_question(name: str) -> bool:
    """Whether a column of this name holds questions or queries."""
    return plain(name) in _QUESTIONS


_QUESTIONS = frozenset(map(plain, QUESTIONS))
